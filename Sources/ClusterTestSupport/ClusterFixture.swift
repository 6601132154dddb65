import Foundation
import GatewayCluster
import GatewayTestSupport
import Synchronization

/// A database with the schema of a cluster and its nodes, `node1`, `node2`, and so on; where asked
/// on a server of its own with a standby that every commit waits for.
package final class ClusterFixture: Sendable {
    private struct Servers {
        var primary: PostgresServer
        var standby: PostgresServer?
    }

    /// The application name of a standby, which the primary's quorum names.
    private static let standbyName = "standby"
    static let key = Array(0..<UInt8(Seal.keyBytes))
    private let servers: Mutex<Servers>
    private let database: String

    package var primary: PostgresServer { servers.withLock { $0.primary } }
    package var standby: PostgresServer? { servers.withLock { $0.standby } }

    /// Creates the database on a server that other tests use, too, or on one of its own.
    ///
    /// - Parameters:
    ///   - nodes: The number of nodes.
    ///   - hasQuorum: Whether to start a standby and to commit with its confirmation.
    ///   - hasServer: Whether to start a server that the test may pause or kill.
    ///   - isOnDisk: Whether the files of such a server are on a disk, and never in memory.
    package init(
        nodes: Int32 = 2, hasQuorum: Bool = false, hasServer: Bool = false, isOnDisk: Bool = false
    ) throws {
        let isAlone = hasQuorum || hasServer
        let primary =
            isAlone ? try PostgresServer(isOnDisk: isOnDisk) : try PostgresServer.shared.get()
        database = isAlone ? "postgres" : try primary.createDatabase()
        let connection = try primary.administration(database: database)
        for node in 1...nodes {
            let known = try connection.rows(
                "SELECT 1 FROM pg_roles WHERE rolname = $1", [.text("node\(node)")])
            if known.isEmpty { try connection.execute("CREATE ROLE node\(node) LOGIN") }
        }
        _ = try ClusterAdministration(connection).prepare(
            Seal(Self.key), logins: (1...nodes).map { "node\($0)" })
        servers = Mutex(
            Servers(
                primary: primary,
                standby: hasQuorum
                    ? try PostgresServer(standbyOf: primary, name: Self.standbyName) : nil))
        if hasQuorum {
            try setQuorum(true)
        }
    }

    package func address(user: String = "postgres") throws -> PostgresAddress {
        try primary.address(user: user, database: database)
    }

    /// Returns the URL of a login, as an operator configures it.
    package func url(user: String = "postgres") -> String {
        url(user: user, hosts: [primary.host] + (standby.map { [$0.host] } ?? []))
    }

    /// Returns the URL of a login by other ways to the servers.
    package func url(user: String, hosts: [String]) -> String {
        "postgres://\(user)@/\(database)?host=\(hosts.joined(separator: ","))&port=\(primary.port)"
    }

    /// Connects as the superuser.
    package func administration() throws -> PostgresAdministration {
        try primary.administration(database: database)
    }

    /// Waits until a statement returns a number.
    package func wait(for count: Int64, _ sql: String) throws {
        let connection = try administration()
        try blockUntil("\(sql) returns \(count)") {
            try connection.rows(sql).first?.integer(0) == count
        }
    }

    /// Runs statements as the superuser on a connection of their own.
    package func execute(_ sql: String) throws { try administration().execute(sql) }

    private static var quorum: String { "ANY 1 (\(standbyName))" }

    /// Waits until the primary and its standby have noticed that commits wait.
    private func awaitQuorum() throws {
        let connection = try primary.administration()
        try blockUntil("the standby takes part in the quorum") {
            let states = try connection.rows("SELECT sync_state FROM pg_stat_replication")
            return try states.first?.text(0) == "quorum"
        }
    }

    /// Sets whether commits wait for the standby.
    package func setQuorum(_ isSet: Bool) throws {
        try primary.set("synchronous_standby_names", isSet ? Self.quorum : "")
        if isSet { try awaitQuorum() }
    }

    /// Copies the primary's data while it is stopped, and returns the path of the copy.
    package func copy() throws -> String {
        try primary.crash()
        let copy = primary.directory + "/copy"
        try PostgresServer.command("/bin/cp", ["-a", primary.directory + "/data", copy])
        try primary.start()
        return copy
    }

    /// Replaces the data of the primary, which must be stopped, by a copy.
    package func replace(by copy: String) throws {
        let data = primary.directory + "/data"
        try FileManager.default.removeItem(atPath: data)
        try PostgresServer.command("/bin/cp", ["-a", copy, data])
    }

    /// Kills the primary, which must have a standby, and promotes that. The old primary becomes the
    /// new one's standby, from a new copy.
    package func failOver() throws {
        let old = primary
        guard let standby else { throw TestFailure("there is no standby") }
        if old.isRunning { try old.crash() }
        // Before it is promoted, so that it never answers without waiting.
        try standby.set("synchronous_standby_names", Self.quorum, whileFollowing: true)
        try standby.promote()
        servers.withLock { $0 = Servers(primary: standby, standby: old) }
        try old.follow(standby, name: Self.standbyName)
        try awaitQuorum()
    }

    package func connection(as login: String) throws -> PostgresAdministration {
        try PostgresServer.connect(try address(user: login))
    }
}
