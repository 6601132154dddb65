import GatewayFleet
import GatewayPostgres
import WidgetModel

extension ClusterAdministration {
    /// Reads the status of the cluster, with the rights of `tg_observer`.
    ///
    /// - Throws: `Faults` at `database`.
    package func status() throws -> ClusterStatus {
        try requireVersion()
        return try Self.naming("database") { try ClusterStatus(connection) }
    }
}

extension ClusterStatus {
    fileprivate init(_ connection: PostgresAdministration) throws {
        let log = try Self.row(
            connection,
            """
            SELECT (SELECT max(version) FROM tg.migration), i.log_id::text, i.closed, t.last,
              encode(t.chain, 'hex'), f.floor,
              (SELECT count(*) FROM generate_series(1, 2) ahead
                WHERE to_regclass('tg.log_' || (t.last / i.slice + ahead)) IS NOT NULL
                  AND to_regclass('tg.event_' || (t.last / i.slice + ahead)) IS NOT NULL),
              (SELECT count(*) FROM tg.owner WHERE part < 4096 AND node IS NULL),
              current_setting('synchronous_standby_names'),
              current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on'
            FROM tg.log_identity i, tg.log_floor f,
              LATERAL (SELECT last, chain FROM tg.log ORDER BY last DESC LIMIT 1) t
            """)
        self.init(
            version: try log.integer(0), log: try log.text(1), isClosed: try log.boolean(2),
            head: try log.integer(3), chain: try log.text(4), slicesAhead: try log.integer(6),
            floor: try log.integer(5), snapshot: try Self.snapshot(connection),
            nodes: try Self.nodes(connection), unowned: try log.integer(7),
            standbyNames: try log.text(8), isSafe: try log.boolean(9),
            standbys: try Self.standbys(connection),
            lockHolders: try Self.lockHolders(connection))
    }

    private static func row(
        _ connection: PostgresAdministration, _ sql: String
    ) throws -> PostgresRow {
        guard let row = try connection.rows(sql).first else { throw PostgresError.unexpectedAnswer }
        return row
    }

    private static func snapshot(
        _ connection: PostgresAdministration
    ) throws -> Snapshot? {
        guard
            let row = try connection.rows(
                """
                SELECT position, node, (extract(epoch FROM clock_timestamp() - written_at) * 1000)::bigint
                FROM tg.snapshot_head ORDER BY position DESC LIMIT 1
                """
            ).first
        else { return nil }
        return Snapshot(
            position: try row.integer(0), node: try row.integer(1),
            age: try Double(row.integer(2)) / 1000)
    }

    private static func nodes(
        _ connection: PostgresAdministration
    ) throws -> [Node] {
        let rows = try connection.rows(
            """
            SELECT m.node, m.login::text, m.url, m.generation,
              (extract(epoch FROM s.until - clock_timestamp()) * 1000)::bigint,
              coalesce(s.serves, false),
              (SELECT count(*) FROM tg.owner o WHERE o.node = m.node AND o.part < 4096),
              concat_ws(',', VARIADIC ARRAY(
                SELECT CASE o.part WHEN 4096 THEN 'snapshot' ELSE 'retention' END
                FROM tg.owner o WHERE o.node = m.node AND o.part IN (4096, 4097)
                ORDER BY o.part)),
              (SELECT position FROM tg.reservation r
                WHERE r.node = m.node AND r.until > clock_timestamp()),
              s.load->>'windowPosition', s.load->>'windowFloor', s.load->>'windowHash'
            FROM tg.node m LEFT JOIN tg.node_seen s USING (node) ORDER BY m.node
            """)
        var nodes: [Node] = []
        for row in rows {
            nodes.append(
                Node(
                    number: try row.integer(0), login: try row.text(1),
                    url: row.isNull(2) ? nil : try row.text(2), generation: try row.integer(3),
                    leaseSeconds: row.isNull(4) ? nil : try Double(row.integer(4)) / 1000,
                    serves: try row.boolean(5), partitions: try row.integer(6),
                    leases: try row.text(7).split(separator: ",").map(String.init),
                    reservation: row.isNull(8) ? nil : try row.integer(8),
                    window: WindowDigest(
                        position: row.isNull(9) ? nil : try row.text(9),
                        floor: row.isNull(10) ? nil : try row.text(10),
                        hash: row.isNull(11) ? nil : try row.text(11))))
        }
        return nodes
    }

    private static func standbys(
        _ connection: PostgresAdministration
    ) throws -> [Standby] {
        var standbys: [Standby] = []
        for row in try connection.rows(
            "SELECT application_name, sync_state FROM pg_stat_replication ORDER BY 1")
        {
            standbys.append(
                Standby(
                    name: row.isNull(0) || row.isNull(1) ? nil : try row.text(0),
                    mode: row.isNull(1) ? nil : try row.text(1)))
        }
        return standbys
    }

    /// A session that has a lock on the table of the one row and waits for none holds the row.
    private static func lockHolders(
        _ connection: PostgresAdministration
    ) throws -> [LockHolder] {
        let rows = try connection.rows(
            """
            SELECT l.pid, coalesce(a.usename::text, ''),
              (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::bigint,
              coalesce(a.wait_event = 'SyncRep', false)
            FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
            WHERE l.locktype = 'relation' AND l.relation = to_regclass('tg.log_lock')
              AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
              AND l.mode = 'RowShareLock' AND l.granted
              AND NOT EXISTS (SELECT FROM pg_locks w WHERE w.pid = l.pid AND NOT w.granted)
            ORDER BY a.xact_start
            """)
        var holders: [LockHolder] = []
        for row in rows {
            holders.append(
                LockHolder(
                    process: try row.integer(0), login: try row.text(1),
                    seconds: row.isNull(2) ? nil : try Double(row.integer(2)) / 1000,
                    waitsForStandby: try row.boolean(3)))
        }
        return holders
    }
}
