import GatewayCore
import Synchronization
import WidgetModel

/// A cursor that was judged, and the epoch that was current at that moment.
///
/// Cursors may be voided between the judgement and the answer that goes by it: whoever acts on it
/// asks for its value in the epoch of the answer.
package struct JudgedCursor: Sendable {
    /// The position from which the client resumes.
    package let point: ResumePoint
    /// The epoch that was current when it was judged. An answer that goes by it is given in this
    /// one or a later one.
    package let epoch: EpochID

    package init(point: ResumePoint, epoch: EpochID) {
        self.point = point
        self.epoch = epoch
    }

    /// Returns where the client resumes by an answer given in `current`.
    func point(in current: EpochID) -> ResumePoint {
        current.ordinal > epoch.ordinal ? .everything : point
    }
}

/// Encodes the cursors that the gateway hands out and judges those that come back.
///
/// When a cursor proves that the log lost a tail, whoever resumed before it was not told: all
/// epochs are void from that moment, and a new one takes their place. Its cursors are handed out
/// only when it is on disk; a crash before that leaves an epoch for which no cursor exists.
package final class CursorCodec: Sendable {
    private struct State {
        var ledger: EpochLedger
        /// The last epoch that cursors are handed out for: the ledger's current one, or the one
        /// before while that is being written to disk.
        var epoch: EpochID
        /// Called with the epoch that takes the place of all void ones.
        var onLostTail: (@Sendable (EpochID) -> Void)?
    }

    private let seal: CursorSeal
    private let state: Mutex<State>
    private let clock: GatewayClock
    private let head: @Sendable () -> UInt64
    /// The number of cursors that knew more than the log does.
    package let ahead = Counter()

    /// Creates a codec.
    ///
    /// - Parameters:
    ///   - epoch: The current epoch.
    ///   - head: Returns the last sequence on disk.
    init(
        seal: CursorSeal, ledger: EpochLedger, epoch: EpochID, clock: GatewayClock,
        head: @escaping @Sendable () -> UInt64
    ) {
        self.seal = seal
        state = Mutex(State(ledger: ledger, epoch: epoch))
        self.clock = clock
        self.head = head
    }

    /// Calls `body` whenever a cursor proves a lost tail, with the epoch that has to be opened.
    func onLostTail(_ body: @escaping @Sendable (EpochID) -> Void) {
        state.withLock { $0.onLostTail = body }
    }

    /// The epoch that cursors are handed out for.
    var epoch: EpochID { state.withLock { $0.epoch } }

    /// Hands out cursors of a new epoch from now on.
    func handOut(_ epoch: EpochID) {
        state.withLock { state in
            if epoch.ordinal > state.epoch.ordinal { state.epoch = epoch }
        }
    }

    /// Returns the text of a cursor.
    ///
    /// - Parameter epoch: The epoch in which the position was found; the current one by default,
    ///   for a client that builds everything after it has the cursor.
    package func text(_ sequence: UInt64, in epoch: EpochID? = nil) -> String {
        seal.cursor(epoch ?? self.epoch, sequence).text
    }

    /// Returns where a client that presents `text` resumes. Unreadable text, and text that was not
    /// sealed here, counts as no cursor.
    package func judge(_ text: String?) -> JudgedCursor {
        guard let text, let cursor = Cursor(text: text), seal.isGenuine(cursor) else {
            return JudgedCursor(point: .everything, epoch: epoch)
        }
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
