import Foundation

/// State shared between threads, with waiting: what `Mutex` cannot do.
package final class TestHTTPMonitor<State>: @unchecked Sendable {
    // Sound: `state` is touched only while `condition` is held.
    private let condition = NSCondition()
    private var state: State

    /// Guards `state`.
    package init(_ state: State) {
        self.state = state
    }

    /// Runs `body` alone and wakes those who wait.
    @discardableResult
    package func update<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        condition.lock()
        defer {
            condition.broadcast()
            condition.unlock()
        }
        return try body(&state)
    }

    /// Runs `body` until it returns a value, at once and after every update; `nil` when none came
    /// within `seconds`.
    package func wait<Result>(
        seconds: Double, _ body: (inout State) -> Result?
    ) -> Result? {
        let deadline = Date(timeIntervalSinceNow: seconds)
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let result = body(&state) { return result }
            guard condition.wait(until: deadline) else { return body(&state) }
        }
    }
}

/// Runs `body` on `count` threads of their own, with their numbers. When all have ended, returns,
/// or throws the first error of any of them.
package func onThreads(
    _ count: Int, _ body: @escaping @Sendable (Int) throws -> Void
) throws {
    let running = TestHTTPMonitor<(left: Int, error: (any Error)?)>((count, nil))
    for number in 0..<count {
        onThread {
            var failure: (any Error)?
            do { try body(number) } catch { failure = error }
            running.update { state in
                state.left -= 1
                state.error = state.error ?? failure
            }
        }
    }
    let error = running.wait(seconds: 3_600) { state -> (any Error)?? in
        state.left == 0 ? .some(state.error) : nil
    }
    if let error, let error { throw error }
}

/// Starts a thread; the default stack is large enough for TLS and small enough for thousands.
package func onThread(
    stackBytes: Int = 512 * 1024, _ body: @escaping @Sendable () -> Void
) {
    let thread = Thread(block: body)
    thread.stackSize = stackBytes
    thread.start()
}
