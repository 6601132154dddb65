import GatewayCore
import Synchronization

/// Callers that wait, for a limited time, until a rising value reaches theirs.
final class Waiters<Value: Comparable & Sendable>: Sendable {
    private struct Waiter {
        let value: Value
        let deadline: Int64
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var reached: Value
        var waiters: [Waiter] = []
        /// Whether a task looks for waiters whose time is over.
        var isSweeping = false
    }

    /// The longest wait, in milliseconds.
    private let patience: Int64
    private let clock: GatewayClock
    private let state: Mutex<State>

    /// Creates a list of callers.
    ///
    /// - Parameter patience: The longest wait, in milliseconds.
    init(from value: Value, patience: Int64, clock: GatewayClock) {
        state = Mutex(State(reached: value))
        self.patience = patience
        self.clock = clock
    }

    var reached: Value { state.withLock { $0.reached } }

    /// The number of callers that wait.
    var count: Int { state.withLock { $0.waiters.count } }

    /// Releases the callers that wait for a value up to this one.
    func advance(to value: Value) {
        let ready = state.withLock { state in
            state.reached = max(state.reached, value)
            return Self.remove(from: &state) { $0.value <= value }
        }
        for waiter in ready { waiter.continuation.resume(returning: true) }
    }

    /// Returns `true` once a value is reached, and `false` if it is not in time.
    func wait(for value: Value) async -> Bool {
        await withCheckedContinuation { continuation in
            let deadline = clock.now() + patience
            let (isReached, sweeps) = state.withLock { state in
                guard state.reached < value else { return (true, false) }
                state.waiters.append(
                    Waiter(value: value, deadline: deadline, continuation: continuation))
                defer { state.isSweeping = true }
                return (false, !state.isSweeping)
            }
            if isReached { continuation.resume(returning: true) }
            if sweeps { Task { await sweep() } }
        }
    }

    /// Releases the callers that have waited too long, until none waits.
    private func sweep() async {
        var isOver = false
        while !isOver {
            await clock.sleep(clock.now() + patience / 10)
            let now = clock.now()
            let late = state.withLock { state in
                let late = Self.remove(from: &state) { $0.deadline <= now }
                isOver = state.waiters.isEmpty
                state.isSweeping = !isOver
                return late
            }
            for waiter in late { waiter.continuation.resume(returning: false) }
        }
    }

    private static func remove(
        from state: inout State, where isOver: (Waiter) -> Bool
    ) -> [Waiter] {
        let count = state.waiters.partition(by: isOver)
        defer { state.waiters.removeSubrange(count...) }
        return Array(state.waiters[count...])
    }
}
