import Foundation
import Synchronization

/// Processes and files to remove when this process ends before every value that owns one is released: a
/// thread that still holds a daemon when the runner exits would leave it running.
enum GatewayProcessLeftovers {
    private struct State {
        var processes: Set<pid_t> = []
        var paths: Set<String> = []
        var isRegistered = false
    }

    private static let state = Mutex(State())

    /// A process was started and is not reaped yet.
    static func add(process: pid_t) {
        update { $0.processes.insert(process) }
    }

    /// The process has ended and is about to be reaped, after which its number may be another's.
    static func remove(process: pid_t) {
        update { $0.processes.remove(process) }
    }

    /// A file or directory was made.
    static func add(path: String) {
        update { $0.paths.insert(path) }
    }

    /// Removes a file or directory now.
    static func remove(path: String) {
        update { $0.paths.remove(path) }
        try? FileManager.default.removeItem(atPath: path)
    }

    private static func update<Result>(_ body: (inout State) -> Result) {
        state.withLock { state in
            _ = body(&state)
            guard !state.isRegistered else { return }
            state.isRegistered = true
            ExitActions.add { clear() }
        }
    }

    private static func clear() {
        let left = state.withLock { state in
            for process in state.processes { kill(process, SIGKILL) }
            return state.paths
        }
        for path in left { try? FileManager.default.removeItem(atPath: path) }
    }
}
