import GatewayStorage
import OpenTelemetry
import Tracing

/// Writes every change of the gateway's state in one order, and hands it to the event loops once it
/// is on disk, before its caller receives a response.
package final class LogWriter: Sendable {
    private let store: SQLiteStore
    /// Receives the messages once they are on disk; called on the writer's thread.
    let publisher: LogPublisher
    /// `nil` where nothing is traced.
    private let tracing: GatewayTracing?

    init(store: SQLiteStore, publisher: LogPublisher, tracing: GatewayTracing?) {
        self.store = store
        self.publisher = publisher
        self.tracing = tracing
    }

    /// The backlog of an event loop or of the sealer, in entries, beyond which writes are rejected:
    /// entries that wait are kept in memory.
    package static let backlogMax: UInt64 = 200_000

    /// Runs a job on the writer's thread and waits until its writes are on disk.
    ///
    /// - Parameters:
    ///   - lane: The lane of the app on whose behalf the job runs.
    ///   - freesSpace: See ``SQLiteStore/write(for:cost:freesSpace:_:)``.
    /// - Throws: The job's errors; ``EngineError/busy(_:)`` and ``EngineError/store(_:)`` if the
    ///   event loops or the disk cannot keep up.
    package func write<T: Sendable>(
        for lane: WriterLane, cost: Int, freesSpace: Bool = false,
        _ job: @escaping @Sendable (inout StoreTransaction) throws -> T
    ) async throws -> T {
        guard publisher.backlog(behind: store.head) <= Self.backlogMax else {
            throw EngineError.busy(.eventLoops)
        }
        let span = tracing?.beginCommit()
        do {
            let value = try await store.write(for: lane, cost: cost, freesSpace: freesSpace) {
                transaction in
                // Until now it waited for the previous transaction.
                span?.addEvent("writing")
                return try job(&transaction)
            }.value
            span?.end()
            return value
        } catch {
            let error = (error as? StoreError).map(EngineError.store) ?? error
            span?.end(failing: error)
            throw error
        }
    }
}
