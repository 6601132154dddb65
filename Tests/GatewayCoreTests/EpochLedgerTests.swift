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

    @Test func `an epoch that never was proves a lost tail`() {
        for unknown in [EpochID(ordinal: 2, nonce: 9), EpochID(ordinal: 4, nonce: 104)] {
            let verdict = Self.ledger().verdict(on: Self.cursor(unknown, 1), head: 30)
            #expect(verdict == .provesLostTail)
        }
    }

    @Test func `an epoch older than what is remembered is void and proves nothing`() {
        let ledger = EpochLedger([.init(id: Self.ids[1], openedAt: 10, isVoid: false)])
        #expect(ledger.verdict(on: Self.cursor(Self.ids[0], 5), head: 30) == .isVoid)
        #expect(EpochLedger([]).verdict(on: Self.cursor(Self.ids[0], 5), head: 30) == .isVoid)
    }

    @Test func `a lost tail voids every older epoch once`() {
        var ledger = Self.ledger()
        let changes = [ledger.voidOlder(), ledger.voidOlder()]
        #expect(changes == [true, false])
        #expect(ledger.verdict(on: Self.cursor(Self.ids[0], 5), head: 30) == .isVoid)
        #expect(ledger.verdict(on: Self.cursor(Self.ids[1], 99), head: 30) == .isVoid)
        #expect(ledger.verdict(on: Self.cursor(Self.ids[2], 25), head: 30) == .holds(25))
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
