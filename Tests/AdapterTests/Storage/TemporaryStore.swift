import Dispatch
import Foundation
import Synchronization

@testable import GatewayStorage

/// Collects values from any thread, in the order in which they arrive.
final class Recorder<Value: Sendable>: Sendable {
    private let storage = Mutex<[Value]>([])

    var values: [Value] { storage.withLock { $0 } }

    func record(_ value: Value) { storage.withLock { $0.append(value) } }

    func record(_ values: some Sequence<Value>) {
        storage.withLock { $0.append(contentsOf: values) }
    }
}

/// An error that a job itself throws.
struct JobError: Error, Equatable {}

extension SQLiteStore {
    /// Appends one change in a job of its own, which records it in `seen` once it is on disk.
    @discardableResult
    func appendChange(
        app: String = "com.mygame", eventID: String? = nil, acceptedAt: Int64 = 1,
        payload: Data = Data("change".utf8), seen: Recorder<UInt64>? = nil
    ) async throws -> UInt64 {
        try await write(cost: payload.count) { transaction in
            let sequence = try transaction.append(
                app: app, type: .change, source: eventID == nil ? nil : "players",
                eventID: eventID, acceptedAt: acceptedAt, payload: payload)
            if let seen { transaction.afterCommit { seen.record(sequence) } }
            return sequence
        }.value
    }

    /// Returns every row of the log.
    func rows(after sequence: UInt64 = 0, batch: Int = 100) throws -> [LogRow] {
        var rows: [LogRow] = []
        try replay(after: sequence, batch: batch) { rows += $0 }
        return rows
    }

    /// Keeps the writer busy until `queueing` has queued this number of jobs, which then share one
    /// transaction, and waits for all of them.
    func gathering(
        _ jobs: Int, _ queueing: (inout ThrowingTaskGroup<Void, any Error>) async -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            let entered = Recorder<Bool>()
            let gate = DispatchSemaphore(value: 0)
            group.addTask {
                _ = try await self.write(cost: 0) { _ in
                    entered.record(true)
                    gate.wait()
                }
            }
            while entered.values.isEmpty { await Task.yield() }
            await queueing(&group)
            while figures.waitingJobs < jobs { await Task.yield() }
            gate.signal()
            try await group.waitForAll()
        }
    }
}
