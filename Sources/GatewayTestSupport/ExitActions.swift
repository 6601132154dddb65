import CurlMulti
import Foundation
import Synchronization

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
