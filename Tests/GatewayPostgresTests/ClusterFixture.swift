import Foundation
import GatewayPostgres
import GatewayTestSupport

/// A database with the schema of a cluster and two nodes, `node1` and `node2`; where asked on a
/// server of its own with a standby that every commit waits for.
final class ClusterFixture: Sendable {
    let primary: PostgresServer
    let standby: PostgresServer?
    private let database: String

    /// Creates the database on a server that other tests use, too, or on one of its own.
    ///
    /// - Parameters:
    ///   - hasQuorum: Whether to start a standby and to commit with its confirmation.
    ///   - hasServer: Whether to start a server that the test may pause or kill.
    ///   - slice: The sequences in a slice.
    init(hasQuorum: Bool = false, hasServer: Bool = false, slice: Int64 = 1_000_000) throws {
        let isAlone = hasQuorum || hasServer
        primary = isAlone ? try PostgresServer() : try PostgresServer.shared.get()
        database = isAlone ? "postgres" : try primary.createDatabase()
        let connection = try primary.administration(database: database)
        try ClusterSchema.createRoles(connection)
        var settings = ClusterSchema.Settings()
        settings.slice = slice
        try ClusterSchema.migrate(connection, settings)
        try Self.addNode(1, login: "node1", connection)
        try Self.addNode(2, login: "node2", connection)
        standby = hasQuorum ? try PostgresServer(standbyOf: primary, name: "standby") : nil
        if hasQuorum { try requireQuorum() }
    }

    /// Registers a node, with a login that other databases of the server may know.
    private static func addNode(
        _ node: Int32, login: String, _ connection: PostgresAdministration
    ) throws {
        let login = try ClusterSchema.NodeLogin(login)
        if try !login.exists(connection) { try login.create(connection) }
        try ClusterSchema.addNode(node, login: login, connection)
    }

    /// Returns the address of a login.
    func address(user: String = "postgres") throws -> PostgresAddress {
        try primary.address(user: user, database: database)
    }

    /// Returns the URL of a login, as an operator configures it.
    func url(user: String = "postgres") -> String {
        "postgres://\(user)@/\(database)?host=\(primary.host)&port=\(primary.port)"
    }

    /// Connects as the superuser.
    func administration() throws -> PostgresAdministration {
        try primary.administration(database: database)
    }

    /// Runs statements as the superuser on a connection of their own.
    func execute(_ sql: String) throws { try administration().execute(sql) }

    /// Has the primary wait for the standby, and waits until both have noticed.
    private func requireQuorum() throws {
        try primary.set("synchronous_standby_names", "ANY 1 (standby)")
        let connection = try primary.administration()
        let deadline = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < deadline {
            let states = try connection.rows("SELECT sync_state FROM pg_stat_replication")
            if try states.first?.text(0) == "quorum" { return }
            usleep(10_000)
        }
        throw TestFailure("the standby does not take part in the quorum")
    }

    /// Connects as a login.
    func connection(as login: String) throws -> PostgresAdministration {
        try PostgresAdministration(try address(user: login))
    }
}
