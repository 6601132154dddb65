import ClusterTestSupport
import Foundation
import GRDB
import GatewayTestSupport
import Logging
import Synchronization

@testable import GatewayCluster
@testable import GatewayStorage

/// A database with the rows of a cluster.
struct TestCluster {
    let server: PostgresServer
    let database: String
    var seal: Seal

    /// - Parameter hasServer: Whether the server is one that the test may pause, kill or replace.
    init(hasServer: Bool = false) throws {
        server = hasServer ? try PostgresServer() : try PostgresServer.shared.get()
        database = hasServer ? "postgres" : try server.createDatabase()
        seal = try Seal(Array(repeating: 7, count: 32))
        _ = try ClusterAdministration(server.administration(database: database)).prepare(seal)
    }

    /// Returns a cluster, and its node `a`, which leads.
    static func led() async throws -> (TestCluster, TestNode) {
        let cluster = try TestCluster()
        let leader = try await TestNode("a", of: cluster)
        try await leader.untilLeading()
        return (cluster, leader)
    }

    var address: PostgresAddress { get throws { try server.address(database: database) } }

    func rows(_ sql: String) throws -> [PostgresRow] {
        try server.administration(database: database).rows(sql)
    }

    func execute(_ sql: String) throws {
        try server.administration(database: database).execute(sql)
    }
}

/// A store that is a node of a cluster, without a gateway around it.
final class TestNode: Sendable {
    let name: String
    let directory: String
    private let start: ClusterStart
    private let task: Task<Void, any Error>
    private let leads = SharedMutex<[Bool]>([])
    private let hasEnded = SharedMutex(false)

    var store: SQLiteStore { start.store }
    var node: ClusterNode { start.node }

    init(
        _ name: String, of cluster: TestCluster, at address: PostgresAddress? = nil,
        in directory: String? = nil, waitsForStandby: Bool = false, canLead: Bool = true
    ) async throws {
        self.name = name
        let directory = try directory ?? GatewayProcess.temporaryDirectory()
        self.directory = directory
        let start = try await ClusterStart(
            ClusterNode.Configuration(
                address: try address ?? cluster.address, seal: cluster.seal, name: name,
                waitsForStandby: waitsForStandby),
            logger: Logger(label: name) { _ in SwiftLogNoOpLogHandler() },
            open: { try SQLiteStore(directory: directory, replication: $0) },
            discard: {
                for file in try FileManager.default.contentsOfDirectory(atPath: directory) {
                    try FileManager.default.removeItem(atPath: directory + "/" + file)
                }
            })
        self.start = start
        let store = start.store
        let hooks = ClusterNode.Hooks(
            repeatBatch: { operations, position, previous in
                try await store.writeLocally(cost: 1) {
                    try $0.repeatOperations(operations, to: position, from: previous)
                }.value
            },
            lead: { [leads] isVoid, _ in
                guard canLead else { throw TestFailure("no") }
                leads.value.withLock { $0.append(isVoid) }
            },
            follow: {})
        task = Task { [node = start.node, hasEnded] in
            defer { hasEnded.value.withLock { $0 = true } }
            try await node.run(hooks)
        }
    }

    /// The times it began to lead: whether all cursors were void.
    var led: [Bool] { leads.value.withLock { $0 } }

    /// Stops it as an operator does: another node may lead at once.
    func stop() async throws {
        task.cancel()
        _ = await task.result
        try await store.close()
    }

    /// Returns why it ended by itself.
    func end() async throws -> (any Error)? {
        try await eventually("\(name) ends") { hasEnded.value.withLock { $0 } }
        switch await task.result {
        case .success: return nil
        case .failure(let error):
            try await store.close()
            return error
        }
    }

    func untilLeading() async throws {
        try await eventually("\(name) leads", details: { node.objection ?? "" }) { node.isLeading }
    }

    /// Appends a change; returns its sequence.
    @discardableResult
    func append(_ id: String = UUID().uuidString) async throws -> UInt64 {
        try await store.write(cost: 1) {
            try $0.append(
                app: "app", type: .change, source: "s", eventID: id, acceptedAt: 1,
                payload: Data(id.utf8))
        }.value
    }

    /// Returns the rows of its tables, but for those of one store alone.
    func dump() throws -> [String: [String]] {
        try store.database.read { db in
            var rows: [String: [String]] = [:]
            for table in [
                "log", "catalog", "epoch", "meta", "state", "registration", "registration_seen",
                "registration_attribute", "push_client", "push_attempt", "provider_token",
            ] {
                let columns = try db.columns(in: table).map(\.name).joined(separator: ", ")
                rows[table] = try Row.fetchAll(
                    db, sql: "SELECT \(columns) FROM \(table) ORDER BY 1, 2"
                ).map(\.description)
            }
            return rows
        }
    }
}

/// A value that closures share.
final class SharedMutex<Value: Sendable>: Sendable {
    let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }
}
