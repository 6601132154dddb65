extension ClusterSchema {
    /// The logins that may be nodes: each is a role, and at most one node of a cluster.
    package struct NodeLogin: Sendable, Equatable {
        package let name: String

        /// Accepts 1 to 63 characters of `a` to `z`, digits and `_`, which SQL takes unquoted.
        ///
        /// - Throws: `PostgresError.schema` for another name.
        package init(_ name: String) throws(PostgresError) {
            let isPlain = name.utf8.allSatisfy {
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || $0 == UInt8(ascii: "_")
            }
            guard isPlain, (1...63).contains(name.utf8.count) else {
                throw .schema(reason: "a node's login has 1 to 63 characters of a-z, 0-9 and _")
            }
            self.name = name
        }

        /// Returns whether the role exists.
        package func exists(_ connection: PostgresAdministration) throws(PostgresError) -> Bool {
            try !connection.rows("SELECT 1 FROM pg_roles WHERE rolname = '\(name)'").isEmpty
        }

        /// Creates the role, which has no password. Needs the right to create roles.
        package func create(_ connection: PostgresAdministration) throws(PostgresError) {
            // A name of `a` to `z` may still be a word of SQL.
            // A node has eight at most; the process that it replaces may still have some of its own.
            try connection.execute("CREATE ROLE \"\(name)\" LOGIN CONNECTION LIMIT 12")
        }
    }

    /// Registers an existing login as a node, in one transaction.
    ///
    /// - Parameters:
    ///   - node: The number of the node, above 0, that no other node has.
    ///   - login: Its login, that no other node has.
    ///   - url: Its address for operators; `nil` if it has none.
    ///   - firstGeneration: The generation before the first one, above all of a removed node with this
    ///     number: a statement of an older process must stay refused.
    package static func addNode(
        _ node: Int32, login: NodeLogin, url: String? = nil, firstGeneration: Int64 = 0,
        _ connection: PostgresAdministration
    ) throws(PostgresError) {
        try connection.transaction { () throws(PostgresError) in
            try connection.execute("GRANT tg_node TO \"\(login.name)\"")
            try connection.rows(
                "INSERT INTO tg.node (node, login, generation, url) VALUES ($1::bigint, $2::text, $3, $4)",
                [
                    .integer(Int64(node)), .text(login.name), .integer(firstGeneration),
                    url.map { .text($0) } ?? .null,
                ])
        }
    }

    /// Removes a node whose lease has run out: releases its partitions and refuses its login from
    /// here on, in one transaction.
    ///
    /// - Returns: The number of partitions and leases that it held; `nil` if the lease still runs, and
    ///   nothing was changed.
    package static func removeNode(
        _ node: Int32, login: NodeLogin, _ connection: PostgresAdministration
    ) throws(PostgresError) -> Int64? {
        let number = [PostgresValue.integer(Int64(node))]
        var released: Int64?
        try connection.transaction { () throws(PostgresError) in
            // The lease first, as a node that takes partitions does.
            let lease = try connection.rows(
                """
                SELECT coalesce(until > clock_timestamp(), false) FROM tg.node_seen
                WHERE node = $1::bigint FOR UPDATE
                """, number)
            guard try lease.first?.boolean(0) != true else { return }
            try connection.rows(
                "SELECT 1 FROM tg.owner WHERE node = $1::bigint ORDER BY part FOR UPDATE", number)
            let row = try connection.rows(
                """
                WITH gone AS (UPDATE tg.owner SET node = NULL, generation = generation + 1
                  WHERE node = $1::bigint RETURNING 1)
                SELECT count(*) FROM gone
                """, number
            ).first
            for table in ["node_seen", "reservation", "node"] {
                try connection.rows("DELETE FROM tg.\(table) WHERE node = $1::bigint", number)
            }
            try connection.execute("REVOKE tg_node FROM \"\(login.name)\"")
            released = try row?.integer(0) ?? 0
        }
        return released
    }
}
