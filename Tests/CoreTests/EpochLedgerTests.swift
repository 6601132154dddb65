import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct EpochLedgerTests {
    static let ids = (1...3).map { EpochID(ordinal: UInt32($0), nonce: UInt32(100 + $0)) }
    static func ledger() -> EpochLedger {
        EpochLedger([
            .init(id: ids[0], openedAt: 0, isVoid: false),
            .init(id: ids[1], openedAt: 10, isVoid: false),
            .init(id: ids[2], openedAt: 20, isVoid: false),
        ])
    }

    static func cursor(_ id: EpochID, _ sequence: UInt64) -> Cursor {
        CursorSeal(testHash).cursor(id, sequence)
    }

    @Test(arguments: [
        (0, 0, EpochLedger.Verdict.holds(0)), (0, 10, .holds(10)), (0, 11, .provesLostTail),
        (1, 10, .holds(10)), (1, 20, .holds(20)), (1, 21, .provesLostTail), (2, 30, .holds(30)),
        (2, 31, .provesLostTail),
    ])
    func `a cursor holds up to the end of its epoch`(
        index: Int, sequence: UInt64, expected: EpochLedger.Verdict
    ) {
        let verdict = Self.ledger().verdict(on: Self.cursor(Self.ids[index], sequence), head: 30)
        #expect(verdict == expected)
    }

    @Test func `an epoch older than what is remembered is void and proves nothing`() {
        let ledger = EpochLedger([.init(id: Self.ids[1], openedAt: 10, isVoid: false)])
        #expect(ledger.verdict(on: Self.cursor(Self.ids[0], 5), head: 30) == .isVoid)
        #expect(EpochLedger([]).verdict(on: Self.cursor(Self.ids[0], 5), head: 30) == .isVoid)
    }

    @Test func `one loss is proved once, whoever shows what was lost, after restarts too`() {
        var ledger = Self.ledger()
        let lost = (4...9).map { EpochID(ordinal: UInt32($0), nonce: 9) }
        let proof = Self.cursor(lost[0], 25)
        let next = ledger.replaceAll(provedBy: proof, head: 30, nonce: 7, now: 1_000_000)
        for id in lost {
            #expect(ledger.verdict(on: Self.cursor(id, 25), head: 30) == .isVoid)
        }
        // The ledger as the next start reads it from disk.
        let restarted = EpochLedger(
            Self.ledger().epochs.map { .init(id: $0.id, openedAt: $0.openedAt, isVoid: true) }
                + [
                    .init(id: next, openedAt: 30, isVoid: false),
                    .init(
                        id: EpochID(ordinal: next.ordinal + 1, nonce: 1), openedAt: 40,
                        isVoid: false),
                ])
        for id in lost + Self.ids {
            #expect(restarted.verdict(on: Self.cursor(id, 25), head: 50) == .isVoid)
        }
        #expect(restarted.verdict(on: Self.cursor(next, 40), head: 50) == .holds(40))
        #expect(restarted.verdict(on: Self.cursor(next, 41), head: 50) == .provesLostTail)
    }

    @Test func `the time never makes an ordinal that leaves no room`() {
        for now in [Int64.min, -1, 0, Int64(UInt32.max), .max] {
            let ordinal = EpochLedger.ordinalBeyondLoss(after: 7, now: now)
            #expect(ordinal >= 8 && ordinal <= UInt32.max - 1_000_000)
        }
    }

    @Test func `a forged cursor is not genuine`() {
        let seal = CursorSeal(testHash)
        let cursor = seal.cursor(Self.ids[0], 5)
        #expect(seal.isGenuine(cursor))
        #expect(seal.isGenuine(Cursor(text: cursor.text) ?? Self.cursor(Self.ids[1], 0)))
        var forged = [cursor, cursor, cursor, cursor]
        forged[0].sequence = 6
        forged[1].epoch = Self.ids[1]
        forged[2].tag ^= 1
        forged[3].epoch = EpochID(ordinal: 101, nonce: 1)
        for cursor in forged { #expect(!seal.isGenuine(cursor)) }
        #expect(!CursorSeal(SipHash(1, 1)).isGenuine(cursor))
    }
}
