import GatewayCore
import Synchronization
import WidgetModel

/// The epochs of the log. Each start of its writer begins one.
///
/// A cursor names the epoch that issued it, which bounds the sequences at which it is valid. Inside
/// the gateway, positions, answers and streams only belong to an *era*: the epochs since cursors
/// were last voided. An era has the name of its first epoch.
///
/// A cursor may prove that the log lost a tail, and that clients that resumed before it missed a
/// notification. Then all epochs are void, and a new one replaces them. Its cursors are issued only
/// when it is on disk: after a crash before that, none of them exists.
package final class EpochHistory: Sendable {
    private struct State {
        var ledger: EpochLedger
        /// The era of what is answered now: the previous one while a new one is written to disk.
        var era: EpochID
        /// Opens the epoch that replaces all void ones; `nil` where another gateway does.
        var onLostTail: (@Sendable (EpochID) -> Void)?
    }

    private let state: Mutex<State>
    // For every notification, without a lock: the ordinal of the era, written first and read last,
    // and the name that cursors of the era get.
    private let eraOrdinal: Atomic<UInt32>
    private let issued: Atomic<UInt64>
    private let clock: GatewayClock
    private let head: @Sendable () -> UInt64
    /// Asks for a cursor that the ledger does not cover; `nil` where the ledger is complete.
    private let find: (@Sendable () async throws -> Void)?
    /// Reports that a cursor proved a lost tail to the gateway that opens the epoch.
    private let report: (@Sendable () -> Void)?
    private let ahead = Counter()

    /// Creates a history.
    ///
    /// - Parameters:
    ///   - head: Returns the last sequence on disk.
    ///   - find: Waits until the ledger has every epoch whose cursors any gateway issued before;
    ///     `nil` if it always has.
    ///   - report: Called when a cursor proves a lost tail and another gateway opens the epoch.
    init(
        _ ledger: EpochLedger, clock: GatewayClock, head: @escaping @Sendable () -> UInt64,
        find: (@Sendable () async throws -> Void)? = nil,
        report: (@Sendable () -> Void)? = nil
    ) {
        let era = ledger.epochs.first?.id ?? EpochID(ordinal: 0, nonce: 0)
        state = Mutex(State(ledger: ledger, era: era))
        eraOrdinal = Atomic(era.ordinal)
        issued = Atomic((ledger.current?.id ?? era).packed)
        self.clock = clock
        self.head = head
        self.find = find
        self.report = report
    }

    /// Calls `body` whenever a cursor proves a lost tail, with the epoch that must be opened; `nil`
    /// if another gateway opens it.
    func onLostTail(_ body: (@Sendable (EpochID) -> Void)?) {
        state.withLock { $0.onLostTail = body }
    }

    /// The era of the cursors issued now.
    package var epoch: EpochID { state.withLock { $0.era } }

    /// The number of cursors that proved that the log lost a tail.
    var aheadCount: UInt64 { ahead.value }

    /// Returns the epoch that a cursor at `sequence` names.
    ///
    /// - Parameter epoch: The era in which the position was found.
    func identity(of sequence: UInt64, in epoch: EpochID) -> EpochID {
        let issued = EpochID(packed: issued.load(ordering: .acquiring))
        // A cursor names an epoch of its position's era; while another era begins, the era itself.
        guard epoch.ordinal == eraOrdinal.load(ordering: .relaxed),
            issued.ordinal >= epoch.ordinal
        else { return epoch }
        return issued
    }

    /// Whether ``judge(_:)`` can answer for a cursor without asking elsewhere.
    func isKnown(_ cursor: Cursor) -> Bool {
        guard find != nil else { return true }
        return state.withLock { $0.ledger.verdict(on: cursor, head: head()) != .provesLostTail }
    }

    /// Waits until ``judge(_:)`` can judge a cursor.
    ///
    /// - Throws: ``EngineError/cluster(_:)`` if no other gateway can tell now.
    func find(_ cursor: Cursor) async throws {
        if let find, !isKnown(cursor) { try await find() }
    }

    /// Begins an epoch that is in the log. Called on one thread.
    ///
    /// - Parameter announce: Called with the new era, if the epoch begins one, before a cursor of
    ///   it is issued.
    func open(
        _ epoch: EpochLedger.Epoch, voidsOlder: Bool, announce: (_ era: EpochID) -> Void
    ) {
        let beginsEra = state.withLock { state in
            // After a cursor proved a lost tail, the ledger has it already.
            if state.ledger.current?.id != epoch.id {
                state.ledger.open(epoch, voidsOlder: voidsOlder)
            }
            return state.ledger.epochs.count == 1 && state.era != epoch.id
        }
        if beginsEra {
            announce(epoch.id)
            state.withLock { $0.era = epoch.id }
            eraOrdinal.store(epoch.id.ordinal, ordering: .relaxed)
        }
        issued.store(epoch.id.packed, ordering: .releasing)
    }

    /// Returns where a client that presents a genuine cursor resumes.
    package func judge(_ cursor: Cursor) -> JudgedCursor {
        let report = report
        let (judged, lostTail) = state.withLock { state in
            var lostTail: (@Sendable (EpochID) -> Void)?
            var point = ResumePoint.everything
            switch state.ledger.verdict(on: cursor, head: head()) {
            case .holds(let sequence): point = .after(sequence)
            case .isVoid: break
            case .provesLostTail:
                guard let onLostTail = state.onLostTail else {
                    if let report { lostTail = { _ in report() } }
                    break
                }
                _ = state.ledger.replaceAll(
                    provedBy: cursor, head: head(), nonce: .random(in: .min ... .max),
                    now: clock.wallSeconds())
                lostTail = onLostTail
            }
            let era = state.ledger.epochs.first?.id ?? state.era
            return (JudgedCursor(point: point, epoch: era), lostTail)
        }
        if let lostTail {
            ahead.increment()
            lostTail(judged.epoch)
        }
        return judged
    }
}

extension EpochID {
    fileprivate var packed: UInt64 { UInt64(ordinal) << 32 | UInt64(nonce) }

    fileprivate init(packed: UInt64) {
        self.init(
            ordinal: UInt32(truncatingIfNeeded: packed >> 32),
            nonce: UInt32(truncatingIfNeeded: packed))
    }
}
