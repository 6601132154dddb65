import GatewayCore
import Synchronization
import WidgetModel

/// A judged cursor, and the epoch that was current at that moment.
///
/// Cursors may be voided between the judgement and the response based on it: code that acts on the
/// cursor asks for its value in the epoch of the response.
package struct JudgedCursor: Sendable {
    /// The position at which the client resumes.
    package let point: ResumePoint
    /// The epoch that was current when it was judged. A response based on it belongs to this epoch
    /// or a later one.
    package let epoch: EpochID

    package init(point: ResumePoint, epoch: EpochID) {
        self.point = point
        self.epoch = epoch
    }

    /// Returns where the client resumes in a response that belongs to `current`.
    func point(in current: EpochID) -> ResumePoint {
        current.ordinal > epoch.ordinal ? .everything : point
    }
}

/// Encodes the cursors that the gateway issues and judges those that come back.
///
/// A cursor may prove that the log lost a tail, and that clients that resumed before it missed a
/// notification. From that moment all epochs are void, and a new one replaces them. Its cursors are
/// issued only when it is on disk; after a crash before that, no cursor of the epoch exists.
package final class CursorCodec: Sendable {
    private struct State {
        var ledger: EpochLedger
        /// The epoch of the cursors issued now: the ledger's current one, or the previous one while
        /// that is being written to disk.
        var epoch: EpochID
        /// Called with the epoch that replaces all void ones.
        var onLostTail: (@Sendable (EpochID) -> Void)?
    }

    private let seal: CursorSeal
    private let state: Mutex<State>
    private let clock: GatewayClock
    private let head: @Sendable () -> UInt64
    /// The number of cursors that were ahead of the log.
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

    /// Calls `body` whenever a cursor proves a lost tail, with the epoch that must be opened.
    func onLostTail(_ body: @escaping @Sendable (EpochID) -> Void) {
        state.withLock { $0.onLostTail = body }
    }

    /// The epoch of the cursors issued now.
    var epoch: EpochID { state.withLock { $0.epoch } }

    /// Issues cursors of a new epoch from now on.
    func handOut(_ epoch: EpochID) {
        state.withLock { state in
            if epoch.ordinal > state.epoch.ordinal { state.epoch = epoch }
        }
    }

    /// Returns the text of a cursor.
    ///
    /// - Parameter epoch: The epoch in which the position was found; by default the current one,
    ///   for a client that builds everything after it receives the cursor.
    package func text(_ sequence: UInt64, in epoch: EpochID? = nil) -> String {
        seal.cursor(epoch ?? self.epoch, sequence).text
    }

    /// Returns where a client that presents `text` resumes. Unreadable text, and text that was not
    /// sealed here, count as no cursor.
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
