import Foundation
import GatewayCore
import GatewayDelivery
import GatewayTestSupport
import NIOCore
import Synchronization
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayStorage

/// Keeps what the leader appends, for others.
final class MemoryLog: StoreReplication {
    let secrets = StoreSecrets(Array(0..<UInt8(StoreSecrets.byteCount)))
    let batches = Mutex<[[StoreOperation]]>([])

    var refusal: StoreError? { nil }

    func append(
        _ operations: [StoreOperation], head: UInt64
    ) throws(StoreError) -> Data {
        batches.withLock { batches in
            batches.append(operations)
            return Self.position(batches.count)
        }
    }

    func diverged() {}

    static func position(_ number: Int) -> Data { Data("\(number)".utf8) }
}

/// A leader and a replica of it.
final class ReplicaPair: Sendable {
    let log = MemoryLog()
    let leader: StreamFixture
    let replica: StreamFixture

    init(clock: GatewayClock = .system, pushes: Bool = false) async throws {
        leader = try StreamFixture(
            SQLiteStore(inMemory: StoreConfiguration(), replication: log), clock: clock,
            pushes: pushes, isShared: true)
        replica = try StreamFixture(
            SQLiteStore(inMemory: StoreConfiguration(), replication: MemoryLog()), clock: clock,
            pushes: pushes, isShared: true)
        _ = try await replica.store.writeLocally(cost: 0) {
            try $0.setReplicationPosition(MemoryLog.position(0))
        }
        try await openEpoch(1)
    }

    func openEpoch(_ ordinal: UInt32, voidsOlder: Bool = false) async throws {
        let log = leader.engine.log
        _ = try await leader.store.write(cost: 1) {
            try log.openEpoch(
                EpochID(ordinal: ordinal, nonce: ordinal), voidsOlder: voidsOlder, &$0)
        }
        try await follow()
    }

    /// Repeats what the replica lacks; returns when its loops have applied it.
    func follow() async throws {
        let engineLog = replica.engine.log
        let position = try #require(try replica.store.replicationPosition())
        let number = try #require(Int(String(decoding: position, as: UTF8.self)))
        for (index, batch) in log.batches.withLock({ $0 }).enumerated().dropFirst(number) {
            // As it is read.
            var bytes: [UInt8] = []
            for operation in batch { operation.append(to: &bytes) }
            let operations = try StoreOperation.list(bytes)
            _ = try await replica.store.writeLocally(cost: 1) {
                try engineLog.repeatBatch(
                    operations, to: MemoryLog.position(index + 1), from: MemoryLog.position(index),
                    &$0)
            }
        }
        for loop in replica.loops.all {
            try await loop.reached(leader.store.head)
            // Messages without a sequence come in the same turn.
            try await loop.loop.submit {}.get()
        }
    }

    /// Returns what both say to a client that polls since a cursor, which is the same.
    func poll(
        _ client: String, since cursor: String?
    ) async throws -> (stale: [String], cursor: String) {
        try await follow()
        let expected = try await leader.poll(
            try leader.admit(client, since: cursor, stream: false))
        let actual = try await replica.poll(
            try replica.admit(client, since: cursor, stream: false))
        #expect(actual.stale == expected.stale)
        #expect(actual.cursor == expected.cursor)
        return actual
    }

    func stop() async throws {
        try await leader.stop()
        try await replica.stop()
    }
}
