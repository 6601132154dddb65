import Logging
import Synchronization

/// Whether a node follows and writes the log of its fleet.
package final class FleetStatus: Sendable {
    /// The state of a connection to the servers.
    private enum Part: Equatable {
        case starting
        case well
        case failing(String)

        init(_ reason: String?) { self = reason.map { .failing($0) } ?? .well }
    }

    private struct State {
        var reader = Part.starting
        var writer = Part.starting
        var lease = Part.starting
        /// The fault that was logged last; `nil` once all was well after it.
        var logged: String?
        var waiting: [CheckedContinuation<Void, Never>] = []

        var isReady: Bool { [writer, reader, lease].allSatisfy { $0 == .well } }

        /// The first fault; `nil` while nothing has failed.
        var fault: String? {
            for case .failing(let reason) in [writer, reader, lease] { return reason }
            return nil
        }
    }

    private let state = Mutex(State())
    private let logger: Logger

    init(_ logger: Logger) { self.logger = logger }

    /// The reason why this node does not follow or write the log; `nil` if it does both.
    package var objection: String? {
        state.withLock { $0.isReady ? nil : $0.fault ?? "the node is starting" }
    }

    /// Records whether the reader follows the log.
    func note(reader reason: String?) { note { $0.reader = Part(reason) } }

    /// Records whether the node's lease is renewed.
    func note(lease reason: String?) { note { $0.lease = Part(reason) } }

    /// Records whether the writer may write.
    func note(writer reason: String?) { note { $0.writer = Part(reason) } }

    /// Returns once this node follows and writes the log.
    package func ready() async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if !state.isReady { state.waiting.append(continuation) }
                return state.isReady
            }
            if isReady { continuation.resume() }
        }
    }

    private func note(_ change: (inout State) -> Void) {
        typealias Waiting = [CheckedContinuation<Void, Never>]
        let (before, fault, waiting) = state.withLock { state -> (String?, String?, Waiting) in
            change(&state)
            let before = state.logged
            // While one part recovers after another, the last fault still holds.
            state.logged = state.fault ?? (state.isReady ? nil : before)
            guard state.isReady else { return (before, state.logged, []) }
            defer { state.waiting = [] }
            return (before, state.logged, state.waiting)
        }
        for continuation in waiting { continuation.resume() }
        guard before != fault else { return }
        if let fault {
            logger.warning(
                "this node does not follow the fleet's log", metadata: ["reason": "\(fault)"])
        } else {
            logger.notice("this node follows the fleet's log again")
        }
    }
}
