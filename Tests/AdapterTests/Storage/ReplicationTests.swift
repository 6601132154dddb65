import Foundation
import GRDB
import Synchronization
import Testing

@testable import GatewayStorage

/// Other stores repeat what a store does, and are then equal to it.
@Suite struct ReplicationTests {
    /// Records what a store does, and can refuse it.
    private final class Recorder: StoreReplication {
        struct State {
            var batches: [(operations: [StoreOperation], head: UInt64)] = []
            var refusal: StoreError?
            var failure: StoreError?
        }

        let secrets = StoreSecrets(Array(0..<UInt8(StoreSecrets.byteCount)))
        let state = Mutex(State())

        var refusal: StoreError? { state.withLock { $0.refusal } }

        func append(
            _ operations: [StoreOperation], head: UInt64
        ) throws(StoreError) -> Data {
            let (failure, position) = state.withLock { state in
                if state.failure == nil { state.batches.append((operations, head)) }
                return (state.failure, Self.position(state.batches.count))
            }
            if let failure { throw failure }
            return position
        }

        func diverged() {}

        static func position(_ number: Int) -> Data { Data("\(number)".utf8) }
    }

    /// Returns the rows of every table but those of one store alone.
    static func dump(_ store: SQLiteStore) throws -> [String: [String]] {
        try store.database.read { db in
            let tables = try String.fetchAll(
                db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            var rows: [String: [String]] = [:]
            for table in tables where !table.hasPrefix("grdb") && table != "sqlite_stat1" {
                let columns = try db.columns(in: table).map(\.name).joined(separator: ", ")
                rows[table] = try Row.fetchAll(
                    db, sql: "SELECT \(columns) FROM \(table) ORDER BY 1, 2"
                ).map(\.description)
            }
            return rows
        }
    }

    /// Does everything that a store can do.
    private static func doEverything(in store: SQLiteStore) async throws {
        let key = RegistrationKey(app: "app", client: "c1")
        _ = try await store.write(cost: 1) { transaction in
            for number in 0..<20 {
                try transaction.append(
                    app: "app", type: .change, source: "s", eventID: "e\(number)",
                    acceptedAt: Int64(number), payload: Data("change \(number)".utf8))
            }
            for app in ["app", "other"] {
                let sequence = try transaction.append(
                    app: app, type: .catalog, source: nil, eventID: nil, acceptedAt: 20,
                    payload: Data())
                try transaction.putCatalog(
                    app: app, sequence: sequence, payload: Data("catalog".utf8))
            }
            try transaction.openEpoch(id: .max, atLeast: 0, now: 5, voidsOlder: false, kept: 10)
        }
        _ = try await store.write(cost: 1) { transaction in
            for client in ["c1", "c2", "c3", ""] {
                try transaction.putRegistration(
                    app: "app", client: client, payload: Data("registration".utf8),
                    attributes: ["team": ["a", "b"], "": [""]], updatedAt: 30, isSeen: true)
            }
            try transaction.putRegistration(
                app: "other", client: "c", payload: Data(), attributes: [:], updatedAt: 31,
                isSeen: false)
            try transaction.putRegistration(
                app: "app", client: "c1", payload: Data("newer".utf8), attributes: ["team": ["b"]],
                updatedAt: 32, isSeen: false)
            try transaction.touch([(key: key, at: Int64(99))])
            try transaction.putPushClients([PushClientRow(key: key, payload: Data([1]))])
            try transaction.putPushes(clearUpTo: 7)
            try transaction.appendPushAttempts(
                (Int64(0)..<5).map {
                    PushAttemptRow(
                        at: $0, key: key, channel: "widgets", outcome: "sent",
                        reason: $0 == 1 ? "why" : nil, reference: "r", milliseconds: -1,
                        sequence: $0 == 2 ? 3 : nil, cause: "change")
                })
            _ = try transaction.replaceProviderToken(
                nil, with: ProviderTokenRow(issuer: "i", issuedAt: 1, token: "t"))
        }
        _ = try await store.write(cost: 1) { transaction in
            _ = try transaction.prune(acceptedBefore: 4, keepRows: .max, limit: 100)
            _ = try transaction.prunePushAttempts(endedBefore: 2, keepRows: 100, limit: 100)
            _ = try transaction.deleteRegistrations(
                app: "app", attribute: (name: "team", value: "a"), limit: 1)
            _ = try transaction.deleteRegistrations(unseenSince: 31, limit: 1)
            try transaction.deleteRegistration(app: "app", client: "none")
            try transaction.openEpoch(
                id: 8, atLeast: 1 << 33, now: 6, voidsOlder: true, kept: 10)
            try transaction.setMeta("key", Data([0, 255]))
            try transaction.setMeta("gone", nil)
            _ = try transaction.deleteApp("other")
            try transaction.append(
                app: "other", type: .removal, source: nil, eventID: nil, acceptedAt: 40,
                payload: Data())
        }
    }

    @Test func aStoreThatRepeatsEverythingIsEqual() async throws {
        let recorder = Recorder()
        let store = try SQLiteStore(inMemory: StoreConfiguration(), replication: recorder)
        try await Self.doEverything(in: store)
        let copy = try SQLiteStore(inMemory: StoreConfiguration(), replication: Recorder())
        _ = try await copy.writeLocally(cost: 1) { try $0.setReplicationPosition(Data()) }
        var last = Data()
        for (number, batch) in recorder.state.withLock({ $0.batches }).enumerated() {
            // As a node reads it.
            var bytes: [UInt8] = []
            for operation in batch.operations { operation.append(to: &bytes) }
            let operations = try StoreOperation.list(bytes)
            #expect(operations == batch.operations)
            let (position, previous) = (Recorder.position(number + 1), last)
            for isNew in [true, false] {
                let isRepeated = try await copy.writeLocally(cost: 1) {
                    try $0.repeatOperations(operations, to: position, from: previous)
                }.value
                // The second time its position says that it has it.
                #expect(isRepeated == isNew)
            }
            #expect(copy.head == batch.head)
            last = position
        }
        let (expected, actual) = (try Self.dump(store), try Self.dump(copy))
        #expect(Set(expected.values.map(\.isEmpty)) == [false])
        for (table, rows) in expected { #expect(actual[table] == rows, "\(table)") }
        #expect(copy.floor == store.floor)
        #expect(copy.usage == store.usage)
    }

    @Test func aFailedJobLeavesNothingToRepeat() async throws {
        let recorder = Recorder()
        let store = try SQLiteStore(inMemory: StoreConfiguration(), replication: recorder)
        await #expect(throws: StoreError.closed) {
            try await store.write(cost: 1) { transaction in
                try transaction.setMeta("a", Data())
                throw StoreError.closed
            }
        }
        _ = try await store.write(cost: 1) { try $0.setMeta("b", Data()) }
        #expect(
            recorder.state.withLock { $0.batches.map(\.operations) } == [[.setMeta("b", Data())]])
    }

    @Test func whoDoesNotLeadReadsOnly() async throws {
        let recorder = Recorder()
        let store = try SQLiteStore(inMemory: StoreConfiguration(), replication: recorder)
        recorder.state.withLock { $0.refusal = .notLeading }
        await #expect(throws: StoreError.notLeading) {
            try await store.write(cost: 1) { try $0.setMeta("a", Data()) }
        }
        await #expect(throws: StoreError.notLeading) {
            try await store.write(cost: 1) {
                try $0.append(
                    app: "app", type: .change, source: nil, eventID: nil, acceptedAt: 0,
                    payload: Data())
            }
        }
        #expect(try await store.write(cost: 1) { try $0.meta("a") }.value == nil)
        _ = try await store.writeLocally(cost: 1) { try $0.setMeta("a", Data()) }
        #expect(try store.meta("a") != nil)
        #expect(recorder.state.withLock { $0.batches.isEmpty })
    }

    @Test func whatTheLogDoesNotConfirmIsNotInForce() async throws {
        let recorder = Recorder()
        let store = try SQLiteStore(inMemory: StoreConfiguration(), replication: recorder)
        recorder.state.withLock { $0.failure = .unconfirmed(reason: "cut") }
        await #expect(throws: StoreError.unconfirmed(reason: "cut")) {
            try await store.write(cost: 1) { transaction in
                try transaction.append(
                    app: "app", type: .change, source: nil, eventID: nil, acceptedAt: 0,
                    payload: Data())
            }
        }
        #expect(store.head == 0)
        recorder.state.withLock { $0.failure = nil }
        _ = try await store.write(cost: 1) { try $0.setMeta("a", Data()) }
        #expect(try store.replicationPosition() == Recorder.position(1))
    }

    @Test(arguments: [[0x80], [1, 99], [2, 1, 5], [3, 13, 200, 1], [2, 3, 0xff]] as [[UInt8]])
    func damagedOperationsAreRefused(_ bytes: [UInt8]) {
        #expect(throws: StoreError.self) { try StoreOperation.list(bytes) }
    }
}
