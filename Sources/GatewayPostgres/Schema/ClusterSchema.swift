/// The schema of a cluster: its creation, its migrations and the nodes that may use it. All of it is
/// for an operator's command; a node that starts only compares the version.
package enum ClusterSchema {
    /// The settings that are fixed when a log is created, because every node must decide alike.
    package struct Settings: Sendable, Equatable {
        /// The sequences in one slice of the log: a twelfth of what is kept, at least 1,000,000.
        package var slice: Int64 = 1_000_000
        /// The number of keys that a version window remembers.
        package var versionKeys: Int64 = 10_000_000

        /// The defaults.
        package init() {}
    }

    /// The migrations in order, each of one or more files. They are only ever appended, because
    /// existing databases have run the previous ones.
    private static let migrations: [[[UInt8]]] = [
        [
            PackageResources.tables_sql, PackageResources.slices_sql,
            PackageResources.append_sql, PackageResources.partitions_sql,
            PackageResources.snapshots_sql, PackageResources.secrets_sql,
            PackageResources.history_sql, PackageResources.move_sql,
            PackageResources.rights_sql,
        ]
    ]

    /// The version that this program reads and writes.
    package static var version: Int64 { Int64(migrations.count) }

    /// Returns whether the roles exist and the owner may create the schema: an operator's login
    /// without the right to create roles then migrates alone.
    package static func hasRoles(_ connection: PostgresAdministration) throws(PostgresError) -> Bool
    {
        let row = try connection.rows(
            """
            SELECT count(*) = 4 AND coalesce(bool_and(rolname <> 'tg_owner'
                OR has_database_privilege(oid, current_database(), 'CREATE')), false)
              AND (SELECT count(*) = 2 FROM pg_auth_members m
                WHERE m.member = to_regrole('tg_operator')
                  AND m.roleid IN (to_regrole('tg_owner'), to_regrole('tg_node')))
            FROM pg_roles WHERE rolname IN ('tg_owner', 'tg_node', 'tg_observer', 'tg_operator')
            """
        ).first
        return try row?.boolean(0) == true
    }

    /// Returns the version of the schema of a database; 0 if it has none.
    package static func presentVersion(
        _ connection: PostgresAdministration
    ) throws(PostgresError) -> Int64 {
        let table = try connection.rows("SELECT to_regclass('tg.migration') IS NOT NULL").first
        guard try table?.boolean(0) == true else { return 0 }
        let row = try connection.rows("SELECT coalesce(max(version), 0) FROM tg.migration").first
        return try row?.integer(0) ?? 0
    }

    /// Creates the roles `tg_owner`, `tg_node`, `tg_observer` and `tg_operator` where they are
    /// missing. Needs the right to create roles; repeatable.
    package static func createRoles(
        _ connection: PostgresAdministration
    ) throws(PostgresError) {
        try connection.execute(String(decoding: PackageResources.roles_sql, as: UTF8.self))
    }

    /// Runs the migrations that a database lacks, all or none, and creates the log if there is none.
    /// Repeatable.
    ///
    /// - Parameter connection: A connection of a superuser or of a member of `tg_operator`.
    /// - Returns: The number of migrations that were run.
    /// - Throws: `PostgresError.schema` when the database is newer than this program.
    @discardableResult
    package static func migrate(
        _ connection: PostgresAdministration, _ settings: Settings = Settings()
    ) throws(PostgresError) -> Int {
        var count = 0
        try connection.transaction { () throws(PostgresError) in
            try connection.execute(
                """
                SET LOCAL ROLE tg_owner;
                CREATE SCHEMA IF NOT EXISTS tg;
                SET LOCAL search_path = tg, pg_temp;
                CREATE TABLE IF NOT EXISTS migration (
                  version int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp());
                LOCK TABLE migration IN EXCLUSIVE MODE;
                """)
            let row = try connection.rows("SELECT coalesce(max(version), 0) FROM migration").first
            let applied = try row?.integer(0) ?? 0
            try check(applied, isAtStart: false)
            for version in (applied + 1)..<(version + 1) {
                for sql in migrations[Int(version) - 1] {
                    try connection.execute(String(decoding: sql, as: UTF8.self))
                }
                try connection.execute("INSERT INTO migration VALUES (\(version))")
                count += 1
            }
            try createLog(connection, settings)
        }
        return count
    }

    /// Compares the version of a database with that of this program.
    ///
    /// - Parameter isAtStart: Whether an older database is refused as well.
    /// - Throws: `PostgresError.schema`.
    static func check(_ applied: Int64, isAtStart: Bool) throws(PostgresError) {
        if applied > version {
            throw .schema(
                reason: "the database has version \(applied), this program knows \(version);"
                    + " use a newer program")
        }
        if isAtStart, applied < version {
            throw .schema(
                reason: "the database has version \(applied), this program needs \(version);"
                    + " migrate it first, with the operator's role")
        }
    }

    /// Creates the identity of the log and its first batch, an empty one that ends at sequence 0:
    /// an append continues the chain of the batch before.
    private static func createLog(
        _ connection: PostgresAdministration, _ settings: Settings
    ) throws(PostgresError) {
        guard try connection.rows("SELECT 1 FROM log_identity").isEmpty else { return }
        try connection.execute(
            """
            INSERT INTO log_identity VALUES (1, gen_random_uuid(), 1, \(settings.slice),
              \(settings.versionKeys), '{}');
            INSERT INTO log_lock VALUES (1);
            INSERT INTO log_floor VALUES (1, 0);
            INSERT INTO owner SELECT part, NULL, 0, 0 FROM generate_series(0, 4098) part;
            SELECT slice();
            INSERT INTO log VALUES (0, 0, 0, 0, uuid_send(gen_random_uuid()), 0, '');
            """)
    }
}
