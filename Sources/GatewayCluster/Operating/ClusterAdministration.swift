/// An operator's actions on the database of a cluster.
package struct ClusterAdministration {
    package struct Fault: Error, Equatable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// The role that nodes' logins are members of, and the one that reads ``status()``.
    package static let (nodeRole, observerRole) = ("timeline_node", "timeline_observer")

    let connection: PostgresAdministration

    /// Connects to the database of a connection string.
    ///
    /// - Throws: ``Fault`` for a connection string that is refused; `PostgresError`.
    package init(database: String, option: String = "database") throws {
        let address: PostgresAddress
        do throws(PostgresAddress.Rejection) {
            address = try PostgresAddress(database)
        } catch {
            throw Fault(description: "\(option): \(error)")
        }
        connection = try PostgresAdministration(address)
    }

    package init(_ connection: PostgresAdministration) { self.connection = connection }

    /// The result of ``prepare(_:logins:)``.
    package struct Prepared: Sendable {
        /// Whether the database had no cluster before.
        package let isNew: Bool
        package let format: Int64
        /// The id of the log.
        package let log: String
    }

    /// Creates the rows and roles of a cluster in a database that has none, with new keys for its
    /// stores; makes logins members of the nodes' role.
    ///
    /// - Throws: `PostgresError`, ``Seal/Fault``; ``Fault`` for a login that does not exist, or a
    ///   database of another format.
    package func prepare(_ seal: Seal, logins: [String] = []) throws -> Prepared {
        let isNew = try !hasCluster()
        if isNew {
            try createRoles()
            try connection.transaction { () throws(PostgresError) in
                try connection.execute(
                    String(decoding: PackageResources.schema_sql, as: UTF8.self))
            }
        }
        guard
            let row = try connection.rows(
                "SELECT log_id::text, format::bigint, secrets FROM timeline.cluster"
            ).first
        else { throw PostgresError.unexpectedAnswer }
        let format = try row.integer(1)
        guard format == ClusterDatabase.format else {
            throw Fault(
                description:
                    "database: its format is \(format), and this program's \(ClusterDatabase.format)"
            )
        }
        if row.isNull(2) {
            try storeSecrets(ClusterStart.newSecrets(), seal)
        } else {
            _ = try seal.open(try row.bytes(2), for: ClusterStart.secretsPlace)
        }
        for login in logins {
            let quoted = try connection.rows(
                "SELECT quote_ident(rolname) FROM pg_roles WHERE rolname = $1", [.text(login)]
            ).first?.text(0)
            guard let quoted else {
                throw Fault(
                    description: "login: there is no role \(login); make it by CREATE ROLE … LOGIN")
            }
            try connection.execute("GRANT \(Self.nodeRole) TO \(quoted)")
        }
        return Prepared(isNew: isNew, format: format, log: try row.text(0))
    }

    /// Replaces the keys of the stores, in a cluster that no node has used.
    func storeSecrets(_ secrets: [UInt8], _ seal: Seal) throws {
        try connection.rows(
            "UPDATE timeline.cluster SET secrets = $1",
            [.bytes(try seal.seal(secrets, for: ClusterStart.secretsPlace))])
    }

    private func hasCluster() throws -> Bool {
        try connection.rows("SELECT to_regclass('timeline.cluster') IS NOT NULL").first?.boolean(0)
            == true
    }

    private func createRoles() throws {
        for role in [Self.nodeRole, Self.observerRole] {
            let known = try connection.rows(
                "SELECT 1 FROM pg_roles WHERE rolname = $1", [.text(role)])
            guard known.isEmpty else { continue }
            do {
                try connection.execute("CREATE ROLE \(role) NOLOGIN")
            } catch PostgresError.schema {
                throw Fault(
                    description:
                        "database: the login may not create the role \(role): use one with CREATEROLE,"
                        + " or a superuser, the first time")
            }
        }
        // Where the login may not, the names of standbys are shown without their states.
        try? connection.execute("GRANT pg_read_all_stats TO \(Self.observerRole)")
    }

    // MARK: Status

    /// A node, as the database knows it.
    package struct Node: Sendable, Codable {
        package let name: String
        package let leads: Bool
        /// The batches that it lacks.
        package let behind: Int64
        /// The time since it last reported, in milliseconds.
        package let silentMilliseconds: Int64
        package let format: Int64
    }

    package struct Standby: Sendable, Codable {
        package let name: String
        /// `sync`, `quorum`, `potential` or `async`; `hidden` if the login may not see it.
        package let state: String

        var mayConfirm: Bool { ["sync", "quorum", "hidden"].contains(state) }
    }

    /// The state of a cluster.
    package struct Status: Sendable, Codable {
        package let log: String
        package let format: Int64
        /// The last sequence of the log, and its last batch.
        package let head: Int64
        package let batch: Int64
        /// The number of times that a node took the lead.
        package let generation: Int64
        /// The time until the lease ends, in milliseconds; not positive if nobody leads.
        package let leaseMilliseconds: Int64
        /// `synchronous_standby_names`.
        package let quorum: String
        package let standbys: [Standby]
        /// Whether a node found that the database lost the end of the log.
        package let isShortened: Bool
        package let nodes: [Node]

        /// What an operator should do.
        package var advice: [String] {
            var advice: [String] = []
            if leaseMilliseconds <= 0 {
                advice.append("nobody leads: start a node, or see why none reaches the database")
            }
            if quorum.isEmpty {
                advice.append(
                    "commits wait for no standby: set synchronous_standby_names, or"
                        + " cluster.durability to primary")
            } else if !standbys.contains(where: \.mayConfirm) {
                advice.append(
                    "no standby confirms commits, so that posts wait: start one that"
                        + " synchronous_standby_names names")
            }
            if isShortened {
                advice.append("the end of the log was lost: the leader voids all cursors")
            }
            for node in nodes where node.silentMilliseconds > 10_000 {
                advice.append("\(node.name) is silent: start it, or forget it")
            }
            return advice
        }

        /// The state as text.
        package var lines: [String] {
            let nodes = nodes.map { node in
                "  \(node.name)  \(node.leads ? "leads" : "follows, \(node.behind) batches behind"),"
                    + " seen \(node.silentMilliseconds / 1_000) s ago"
            }
            var lines = [
                "log: \(log), format \(format), head \(head), batch \(batch)",
                "leader: generation \(generation), lease \(leaseMilliseconds) ms",
                "quorum: \(quorum.isEmpty ? "none" : quorum)", "standbys: \(standbys.count)",
            ]
            lines += standbys.map { "  \($0.name)  \($0.state)" }
            return lines + ["nodes: \(self.nodes.count)"] + nodes + advice.map { "to do: \($0)" }
        }
    }

    /// Reads the state of the cluster.
    ///
    /// - Throws: `PostgresError`; ``Fault`` if the database has no cluster.
    package func status() throws -> Status {
        guard try hasCluster() else {
            throw Fault(description: "database: it has no cluster; run `cluster prepare`")
        }
        let head = try connection.rows(
            """
            SELECT c.log_id::text, c.format::bigint, b.head, b.number, l.generation,
              greatest(extract(epoch FROM l.until - clock_timestamp()) * 1000, -1)::bigint,
              current_setting('synchronous_standby_names'), c.lost IS NOT NULL
            FROM timeline.cluster c, timeline.leader l,
              (SELECT number, head FROM timeline.batch ORDER BY number DESC LIMIT 1) b
            """
        ).first
        guard let head else { throw PostgresError.unexpectedAnswer }
        let nodes = try connection.rows(
            """
            SELECT n.name, l.node IS NOT DISTINCT FROM n.name AND l.until > clock_timestamp(),
              (SELECT max(number) FROM timeline.batch) - n.position,
              (extract(epoch FROM clock_timestamp() - n.seen) * 1000)::bigint, n.format::bigint
            FROM timeline.node n, timeline.leader l ORDER BY n.name
            """)
        let standbys = try connection.rows(
            """
            SELECT coalesce(application_name, ''), coalesce(sync_state, 'hidden')
            FROM pg_stat_replication ORDER BY 1
            """)
        return Status(
            log: try head.text(0), format: try head.integer(1), head: try head.integer(2),
            batch: try head.integer(3), generation: try head.integer(4),
            leaseMilliseconds: try head.integer(5), quorum: try head.text(6),
            standbys: try standbys.map { row in
                Standby(name: try row.text(0), state: try row.text(1))
            },
            isShortened: try head.boolean(7),
            nodes: try nodes.map { row in
                Node(
                    name: try row.text(0), leads: try row.boolean(1),
                    behind: max(0, try row.integer(2)), silentMilliseconds: try row.integer(3),
                    format: try row.integer(4))
            })
    }

    /// Makes the leader void all cursors, as after the loss of a part of the log.
    ///
    /// - Throws: `PostgresError`.
    package func voidCursors() throws {
        try connection.rows(
            """
            UPDATE timeline.cluster
            SET lost = greatest(lost, (SELECT max(number) FROM timeline.batch))
            """)
    }

    /// Forgets a node that is silent; returns whether there was one.
    ///
    /// - Throws: `PostgresError`.
    package func forget(node: String) throws -> Bool {
        try !connection.rows(
            """
            DELETE FROM timeline.node
            WHERE name = $1 AND seen < clock_timestamp() - interval '10 s' RETURNING name
            """, [.text(node)]
        ).isEmpty
    }
}
