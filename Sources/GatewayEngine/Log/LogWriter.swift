import GatewayCore
import GatewayStorage
import OpenTelemetry
import Tracing
import WidgetModel

/// Writes every change of the gateway's state in one order, and hands it to the event loops once it
/// is on disk, before its caller receives a response.
package final class LogWriter: Sendable {
    private let store: SQLiteStore
    private let quota: AppQuota
    private let loops: [ShardLoop]
    /// Receives the same messages as the loops; `nil` where nothing is pushed.
    private let push: PushLoop?
    /// `nil` where nothing is traced.
    private let tracing: GatewayTracing?

    init(
        store: SQLiteStore, quota: AppQuota, loops: ShardLoops, push: PushLoop?,
        tracing: GatewayTracing?
    ) {
        self.store = store
        self.quota = quota
        self.loops = loops.all
        self.push = push
        self.tracing = tracing
    }

    /// The number of event loops that receive each message.
    var loopCount: Int { loops.count }

    /// The backlog of an event loop, in entries, beyond which writes are rejected: entries waiting
    /// for a loop are kept in memory.
    static let backlogMax: UInt64 = 200_000

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
        let head = store.head
        let lowest = loops.reduce(head) { min($0, $1.position) }
        guard head - lowest <= Self.backlogMax else { throw EngineError.busy(.eventLoops) }
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

    /// Hands messages to every loop, in commit order; called on the writer's thread.
    ///
    /// - Parameter traced: The traces of their changes.
    func publish(_ messages: [LogMessage], _ traced: PostTrace.Decided? = nil) {
        if let traced, let tracing { traced.committed(tracing) }
        let all = traced.map { messages + $0.messages } ?? messages
        for loop in loops { loop.submit(all) }
        push?.submit(messages.map { .log($0) })
    }

    /// Hands a new epoch to the push loop and then to every event loop: pushes switch to it before
    /// any client can hold one of its cursors.
    func publish(_ epoch: EpochID) {
        push?.submit([.log(.epoch(epoch))])
        for loop in loops { loop.submit([.epoch(epoch)]) }
    }

    // MARK: Quotas

    // Checked on the writer's thread, which sees the results of earlier jobs in the same
    // transaction, so that no two requests pass a limit together.

    /// Checks that an app may have one more registration.
    func checkNewClient(of app: String, _ transaction: borrowing StoreTransaction) throws {
        do throws(AppQuota.Refusal) {
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
        do throws(AppQuota.Refusal) {
            try quota.checkLog(adding: bytes, to: transaction.usage(of: app))
        } catch {
            throw EngineError.quota(error)
        }
    }
}
