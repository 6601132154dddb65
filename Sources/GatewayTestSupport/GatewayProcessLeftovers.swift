import CurlMulti
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

/// Actions that a test program takes when it ends, for what its values would have released.
package enum ExitActions {
    private static let actions = Mutex<[@Sendable () -> Void]>([])

    /// Adds an action. It runs while other threads may still use anything but what it removes.
    package static func add(_ action: @escaping @Sendable () -> Void) {
        let isFirst = actions.withLock { actions in
            actions.append(action)
            return actions.count == 1
        }
        guard isFirst else { return }
        keepOpenSSLAtExit()
        // Handlers registered before this one, and the destructors of libraries, would free memory
        // that threads of the tests still use: the process ends here.
        on_exit(
            { status, _ in
                for action in ExitActions.actions.withLock({ $0 }) { action() }
                fflush(nil)
                _exit(status)
            }, nil)
    }
}
