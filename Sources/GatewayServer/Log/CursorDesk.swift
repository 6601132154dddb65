import Foundation
import GatewayCore
import Synchronization
import WidgetModel

/// A cursor that was judged, and the epoch that was current at that moment.
///
/// Cursors may be voided between the judgement and the answer that goes by it: whoever acts on it
/// asks for its value in the epoch of the answer.
struct JudgedCursor: Sendable {
    /// Where the client resumes.
    let point: ResumePoint
    /// The epoch that was current when it was judged. An answer that goes by it is given in this
    /// one or a later one.
    let epoch: EpochID

    /// Returns where the client resumes by an answer given in `current`.
    func point(in current: EpochID) -> ResumePoint {
        current.ordinal > epoch.ordinal ? .everything : point
    }
}

/// Makes the cursors the gateway hands out and judges those that come back, and tells wall time.
///
/// When a cursor proves that the log lost a tail, whoever resumed before it was not told: all
/// epochs are void from that moment, and a new one takes their place. Its cursors are handed out
/// only when it is on disk; a crash before that leaves an epoch for which no cursor exists.
final class CursorDesk: Sendable {
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
    private let head: @Sendable () -> UInt64
    /// Cursors that knew more than the log does.
    let ahead = Counter()
    /// The last date that was told.
    private let lastDate = Mutex((second: Int64.min, text: ""))

    /// - Parameters:
    ///   - epoch: The current one.
    ///   - head: The last sequence on disk.
    init(
        seal: CursorSeal, ledger: EpochLedger, epoch: EpochID,
        head: @escaping @Sendable () -> UInt64
    ) {
        self.seal = seal
        state = Mutex(State(ledger: ledger, epoch: epoch))
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

    /// The text of a cursor.
    ///
    /// - Parameter epoch: The epoch in which the position was found; the current one by default,
    ///   for a client that builds everything after it has the cursor.
    func text(_ sequence: UInt64, in epoch: EpochID? = nil) -> String {
        seal.cursor(epoch ?? self.epoch, sequence).text
    }

    /// Where a client that presents `text` resumes. Unreadable text, and text that was not sealed
    /// here, counts as no cursor.
    func judge(_ text: String?) -> JudgedCursor {
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
                    now: wallSeconds())
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

    /// Seconds since 1970.
    func wallSeconds() -> Int64 { wallMilliseconds() / 1000 }

    /// Now as HTTP tells it (RFC 9110 section 5.6.7).
    func date() -> String {
        let second = wallSeconds()
        return lastDate.withLock { date in
            if date.second != second { date = (second, httpDate(second)) }
            return date.text
        }
    }

    /// Milliseconds since 1970.
    func wallMilliseconds() -> Int64 { Int64(Date().timeIntervalSince1970 * 1000) }
}
