import GatewayCore
import GatewayStorage
import OpenTelemetry
import Tracing

/// Writes every change of the gateway's state in one order, and hands it to the event loops once it
/// is on disk, before its caller receives a response.
package final class LogWriter: Sendable {
    private let store: SQLiteStore
    private let quota: AppQuota
    /// Receives the messages once they are on disk; called on the writer's thread.
    let publisher: LogPublisher
    /// `nil` where nothing is traced.
    private let tracing: GatewayTracing?

    init(
        store: SQLiteStore, quota: AppQuota, publisher: LogPublisher, tracing: GatewayTracing?
    ) {
        self.store = store
        self.quota = quota
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

    // MARK: Quotas

    // Checked on the writer's thread, which sees the results of earlier jobs in the same
    // transaction, so that no two requests pass a limit together.

    /// Checks that an app may have one more registration.
    func checkNewClient(of app: String, _ transaction: borrowing StoreTransaction) throws {
        do throws(AppQuota.Rejection) {
            try quota.checkNewClient(of: transaction.usage(of: app))
        } catch {
            throw EngineError.quota(error)
        }
    }

    /// Checks that the log may store more bytes for an app.
    func checkLog(
        adding bytes: Int, of app: String, _ transaction: borrowing StoreTransaction
    ) throws {
        guard bytes > 0 else { return }
        do throws(AppQuota.Rejection) {
            try quota.checkLog(adding: bytes, to: transaction.usage(of: app))
        } catch {
            throw EngineError.quota(error)
        }
    }
}
