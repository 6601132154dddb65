import TimelineGatewayClient

/// A timeout for work that may ignore its cancellation.
enum Deadline {
    struct Passed: Error, CustomStringConvertible {
        var description: String { "there was no answer in time" }
    }

    /// Returns the outcome of `work`, unless `limit` or the cancellation of the calling task comes
    /// first; then the work is cancelled and its late result dropped.
    static func run<Value: Sendable>(
        _ limit: Duration, _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let task = Task { () async -> Result<Value, any Error> in
            do {
                return .success(try await work())
            } catch {
                return .failure(error)
            }
        }
        let outcome = await withTaskCancellationHandler {
            await value(of: task, within: limit)
        } onCancel: {
            task.cancel()
        }
        if let outcome { return try outcome.get() }
        task.cancel()
        try Task.checkCancellation()
        throw Passed()
    }
}
