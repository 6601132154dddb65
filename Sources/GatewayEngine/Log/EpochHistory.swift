import GatewayCore
import Synchronization
import WidgetModel

/// The epochs of the embedded log, with a new one for each start.
///
/// A cursor may prove that the log lost a tail, and that clients that resumed before it missed a
/// notification. From that moment all epochs are void, and a new one replaces them. Its cursors are
/// issued only when it is on disk; after a crash before that, no cursor of the epoch exists.
package final class EpochHistory: CursorHistory {
    private struct State {
        var ledger: EpochLedger
        /// The epoch of the cursors issued now: the ledger's current one, or the previous one while
        /// that is being written to disk.
        var epoch: EpochID
        /// Called with the epoch that replaces all void ones.
        var onLostTail: (@Sendable (EpochID) -> Void)?
    }

    private let state: Mutex<State>
    private let clock: GatewayClock
    private let head: @Sendable () -> UInt64
    private let ahead = Counter()

    /// Creates a history.
    ///
    /// - Parameters:
    ///   - epoch: The current epoch.
    ///   - head: Returns the last sequence on disk.
    init(
        _ ledger: EpochLedger, epoch: EpochID, clock: GatewayClock,
        head: @escaping @Sendable () -> UInt64
    ) {
        state = Mutex(State(ledger: ledger, epoch: epoch))
        self.clock = clock
        self.head = head
    }

    /// Calls `body` whenever a cursor proves a lost tail, with the epoch that must be opened.
    func onLostTail(_ body: @escaping @Sendable (EpochID) -> Void) {
        state.withLock { $0.onLostTail = body }
    }

    package var epoch: EpochID { state.withLock { $0.epoch } }

    package var aheadCount: UInt64 { ahead.value }

    package func identity(of sequence: UInt64, in epoch: EpochID) -> EpochID { epoch }

    package func isKnown(_ cursor: Cursor) -> Bool { true }

    package func find(_ cursor: Cursor) {}

    /// Issues cursors of a new epoch from now on.
    func handOut(_ epoch: EpochID) {
        state.withLock { state in
            if epoch.ordinal > state.epoch.ordinal { state.epoch = epoch }
        }
    }

    package func judge(_ cursor: Cursor) -> JudgedCursor {
        let (judged, lostTail) = state.withLock { state in
            var lostTail: (@Sendable (EpochID) -> Void)?
            var point = ResumePoint.everything
            switch state.ledger.verdict(on: cursor, head: head()) {
            case .holds(let sequence): point = .after(sequence)
            case .isVoid: break
            case .provesLostTail:
                _ = state.ledger.replaceAll(
                    provedBy: cursor, head: head(), nonce: .random(in: .min ... .max),
                    now: clock.wallSeconds())
                lostTail = state.onLostTail
            }
            let epoch = state.ledger.current?.id ?? state.epoch
            return (JudgedCursor(point: point, epoch: epoch), lostTail)
        }
        if let lostTail {
            ahead.increment()
            lostTail(judged.epoch)
        }
        return judged
    }
}
