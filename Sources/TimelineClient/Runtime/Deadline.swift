import Synchronization

/// A timeout for work that may ignore its cancellation.
enum Deadline {
    /// The error for work that exceeded its deadline.
    struct Passed: Error, CustomStringConvertible {
        var description: String { "the provider did not answer in time" }
    }

    /// Returns the outcome of `work`, unless `limit` or the cancellation of the calling task comes
    /// first; then the work is cancelled and its late result dropped.
    static func run<Value: Sendable>(
        _ limit: Duration, _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let race = Race<Value>()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                race.start(continuation)
                race.add(
                    Task {
                        do {
                            race.finish(.success(try await work()))
                        } catch {
                            race.finish(.failure(error))
                        }
                    })
                race.add(
                    Task {
                        try? await Task.sleep(for: limit)
                        race.finish(.failure(Passed()))
                    })
            }
        } onCancel: {
            race.finish(.failure(CancellationError()))
        }
    }

    private final class Race<Value: Sendable>: Sendable {
        private struct State {
            var continuation: CheckedContinuation<Value, any Error>?
            var outcome: Result<Value, any Error>?
            var tasks: [Task<Void, Never>] = []
        }

        private let state = Mutex(State())

        func start(_ continuation: CheckedContinuation<Value, any Error>) {
            let outcome = state.withLock { state in
                if state.outcome == nil { state.continuation = continuation }
                return state.outcome
            }
            if let outcome { continuation.resume(with: outcome) }
        }

        func add(_ task: Task<Void, Never>) {
            let isOver = state.withLock { state in
                if state.outcome == nil { state.tasks.append(task) }
                return state.outcome != nil
            }
            if isOver { task.cancel() }
        }

        /// Reports an outcome; only the first counts.
        func finish(_ outcome: Result<Value, any Error>) {
            let (continuation, tasks) = state.withLock { state in
                guard state.outcome == nil else {
                    return (nil as CheckedContinuation<Value, any Error>?, [Task<Void, Never>]())
                }
                state.outcome = outcome
                defer {
                    state.continuation = nil
                    state.tasks = []
                }
                return (state.continuation, state.tasks)
            }
            continuation?.resume(with: outcome)
            for task in tasks { task.cancel() }
        }
    }
}
