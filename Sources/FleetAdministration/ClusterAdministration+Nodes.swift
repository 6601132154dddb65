import GatewayPostgres
import WidgetModel

extension ClusterAdministration {
    /// A node as it was added or removed.
    package struct Node: Sendable, Equatable {
        package let number: Int32
        package let login: String
        /// Its address; `nil` if it has none.
        package let url: String?
    }

    /// Makes a login a node; repeatable with equal values.
    ///
    /// - Parameters:
    ///   - login: The login.
    ///   - url: The address of the node for operators.
    ///   - createsLogin: Whether to create the login, if it is missing.
    /// - Returns: The node, and whether it is new.
    /// - Throws: `Faults` at `login`, `url` or `database`.
    package func addNode(
        login name: String, url: String?, createsLogin: Bool
    ) throws -> (node: Node, isNew: Bool) {
        try requireSchema()
        let login = try Self.naming("login") {
            try ClusterSchema.NodeLogin(name)
        }
        if let url, !url.hasPrefix("https://") || url.utf8.count > 512 {
            throw Faults("url", "must be an https:// URL of at most 512 bytes")
        }
        if let known = try nodes().first(where: { $0.login == name }) {
            guard known.url == url || url == nil else {
                throw Faults(
                    "url",
                    "node \(known.number) has the login \(name) and the URL"
                        + " \(known.url ?? "-"); remove it first")
            }
            return (known, false)
        }
        let exists = try Self.naming("database") {
            try login.exists(connection)
        }
        if !exists {
            guard createsLogin else {
                throw Faults(
                    "login",
                    "the role \(name) does not exist; create it, or add --create-login")
            }
            try create(login)
        }
        let number = try Self.naming("login") {
            let next = try connection.rows(
                """
                SELECT greatest((SELECT max(node) FROM tg.node), (SELECT max(node) FROM tg.owner),
                    0) + 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint
                """
            ).first
            let number = Int32(clamping: try next?.integer(0) ?? 1)
            // A number may have been a removed node's: its generations lie below the present time.
            try ClusterSchema.addNode(
                number, login: login, url: url, firstGeneration: try next?.integer(1) ?? 0,
                connection)
            return number
        }
        return (Node(number: number, login: name, url: url), true)
    }

    /// Removes a node that has stopped, and releases its partitions.
    ///
    /// - Parameter login: The login of the node, which stays as a role.
    /// - Returns: The node, and the number of partitions and leases that it held.
    /// - Throws: `Faults` at `login` or `database`.
    package func removeNode(login name: String) throws -> (node: Node, released: Int64) {
        try requireSchema()
        let login = try Self.naming("login") {
            try ClusterSchema.NodeLogin(name)
        }
        guard let node = try nodes().first(where: { $0.login == name }) else {
            throw Faults("login", "\(name) is not a node; `cluster status` names the nodes")
        }
        let released = try Self.naming("login") {
            try ClusterSchema.removeNode(node.number, login: login, connection)
        }
        guard let released else {
            throw Faults(
                "login",
                "the lease of node \(node.number) still runs; stop it, wait 10 s and try again")
        }
        return (node, released)
    }

    private func create(_ login: ClusterSchema.NodeLogin) throws {
        do {
            try login.create(connection)
        } catch PostgresError.schema {
            throw Faults(
                "login",
                "this role may not create \(login.name); run as one with CREATEROLE, or have it created:"
                    + " CREATE ROLE \(login.name) LOGIN")
        } catch {
            throw Faults("login", "\(error)")
        }
    }

    private func nodes() throws -> [Node] {
        return try Self.naming("database") {
            var nodes: [Node] = []
            for row in try connection.rows(
                "SELECT node, login::text, url FROM tg.node ORDER BY node")
            {
                nodes.append(
                    Node(
                        number: Int32(clamping: try row.integer(0)), login: try row.text(1),
                        url: row.isNull(2) ? nil : try row.text(2)))
            }
            return nodes
        }
    }

    private func requireSchema() throws {
        try requireVersion()
        try requireOwner()
    }
}
