import Logging
import Synchronization

/// Whether a node follows and writes the log of its fleet.
package final class FleetStatus: Sendable {
    private struct State {
        var reader: String? = "the log was not read yet"
        var writer: String? = "no server was reached yet"
        var lease: String? = "the node has no lease yet"
        var waiting: [CheckedContinuation<Void, Never>] = []

        var objection: String? { writer ?? reader ?? lease }
    }

    private let state = Mutex(State())
    private let logger: Logger

    init(_ logger: Logger) { self.logger = logger }

    /// The reason why this node does not follow or write the log; `nil` if it does both.
    package var objection: String? { state.withLock { $0.objection } }

    /// Records whether the reader follows the log.
    func note(reader reason: String?) { note { $0.reader = reason } }

    /// Records whether the node's lease is renewed.
    func note(lease reason: String?) { note { $0.lease = reason } }

    /// Records whether the writer may write.
    func note(writer reason: String?) { note { $0.writer = reason } }

    /// Returns once this node follows and writes the log.
    package func ready() async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if state.objection != nil { state.waiting.append(continuation) }
                return state.objection == nil
            }
            if isReady { continuation.resume() }
        }
    }

    private func note(_ change: (inout State) -> Void) {
        let (before, after, waiting) = state.withLock { state in
            let before = state.objection
            change(&state)
            let after = state.objection
            defer { if after == nil { state.waiting = [] } }
            return (before, after, after == nil ? state.waiting : [])
        }
        for continuation in waiting { continuation.resume() }
        guard before != after else { return }
        if let after {
            logger.warning(
                "this node does not follow the fleet's log", metadata: ["reason": "\(after)"])
        } else {
            logger.notice("this node follows the fleet's log")
        }
    }
}
