import GatewayCluster

/// The outbox of a database, by one connection of a poller. Each call blocks its thread for a
/// bounded time; after an error the connection is of no more use.
final class OutboxTable {
    struct Row {
        let number: Int64
        let event: DatabaseEvent
    }

    private static let timeoutMilliseconds: Int64 = 30_000

    private let connection: ClusterConnection
    private var renewed: ContinuousClock.Instant?

    /// - Parameter attempt: The number of attempts before, each of which began at another server.
    init(_ address: PostgresAddress, attempt: Int) throws(PostgresError) {
        connection = try ClusterConnection(address.servers(at: attempt))
        // Rows that a crash of the server brings back are posted again, and count as duplicates. A
        // post ends after a minute, so only a poller that hangs keeps its rows longer.
        try connection.run([
            ("SET synchronous_commit = off", []),
            ("SET idle_in_transaction_session_timeout = '2min'", []),
            ("LISTEN \(Outbox.schema)", []),
        ])
    }

    /// Begins a transaction, and locks the oldest rows that no other poller has locked.
    func lock(_ count: Int) throws(PostgresError) -> [Row] {
        let answers = try connection.run(
            [
                ("BEGIN", []),
                (
                    """
                    SELECT id, event::text,
                      to_char(created AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                      change::text
                    FROM \(Outbox.schema).event WHERE NOT dead ORDER BY id
                    LIMIT \(count) FOR UPDATE SKIP LOCKED
                    """, []
                ),
            ], within: Self.timeoutMilliseconds)
        return try answers[1].map { row throws(PostgresError) in
            Row(
                number: try row.integer(0),
                event: DatabaseEvent(
                    id: try row.text(1), time: try row.text(2), change: try row.bytes(3)))
        }
    }

    /// Deletes locked rows, and ends the transaction.
    func remove(_ rows: [Row]) throws(PostgresError) {
        try end(
            """
            DELETE FROM \(Outbox.schema).event
            WHERE NOT dead AND id = ANY($1::text[]::bigint[])
            """,
            [.texts(rows.map { String($0.number) })])
    }

    /// Sets locked rows aside, each with the reason at its index, and ends the transaction.
    func setAside(_ rows: [Row], _ reasons: [Int: String]) throws(PostgresError) {
        let reasons = reasons.sorted { $0.key < $1.key }
        try end(
            """
            UPDATE \(Outbox.schema).event e SET dead = true, reason = r.reason
            FROM unnest($1::text[]::bigint[], $2::text[]) AS r(id, reason)
            WHERE NOT e.dead AND e.id = r.id
            """,
            [
                .texts(reasons.map { String(rows[$0.key].number) }),
                .texts(reasons.map { $0.value }),
            ])
    }

    /// Ends the transaction, and leaves the rows to any poller.
    func release() throws(PostgresError) { try connection.rows("ROLLBACK") }

    private func end(_ sql: String, _ values: [PostgresValue]) throws(PostgresError) {
        try connection.run([(sql, values), ("COMMIT", [])], within: Self.timeoutMilliseconds)
    }

    /// Ends a transaction that found no rows, and waits for some. Returns at once where changes did
    /// not notify: there may be one since the look.
    func awaitRows() throws(PostgresError) {
        try release()
        if let renewed, ContinuousClock.now < renewed + .seconds(30) {
            // A transaction that changed a row before, and commits meanwhile, does not notify.
            guard try connection.awaitNotification(within: 1_000) else { return }
            // The transactions meanwhile need not notify.
            try notify("NULL")
            self.renewed = nil
        } else {
            // Renewed before that has passed: one that was killed costs little.
            try notify("clock_timestamp() + interval '1 min'")
            renewed = .now
        }
    }

    private func notify(_ until: String) throws(PostgresError) {
        try connection.rows("UPDATE \(Outbox.schema).poller SET waits_until = \(until)")
    }
}

/// The rows of an outbox, by entity.
struct OutboxStatus: Codable {
    struct Entity: Codable {
        let entity: String
        let waiting: Int64
        let dead: Int64
        /// The age of the oldest row that waits; `nil` without one.
        let oldestSeconds: Int64?
        /// Why one of the dead rows was refused.
        let reason: String?
    }

    let waiting: Int64
    let dead: Int64
    let entities: [Entity]

    init(_ address: PostgresAddress) throws(PostgresError) {
        entities = try PostgresAdministration(address).rows(
            """
            SELECT coalesce(change->>'entity', ''), count(*) FILTER (WHERE NOT dead),
              count(*) FILTER (WHERE dead), extract(epoch FROM clock_timestamp()
                - min(created) FILTER (WHERE NOT dead))::bigint, min(reason) FILTER (WHERE dead)
            FROM \(Outbox.schema).event GROUP BY 1 ORDER BY 1
            """
        ).map { row throws(PostgresError) in
            Entity(
                entity: try row.text(0), waiting: try row.integer(1), dead: try row.integer(2),
                oldestSeconds: row.isNull(3) ? nil : try row.integer(3),
                reason: row.isNull(4) ? nil : try row.text(4))
        }
        waiting = entities.reduce(0) { $0 + $1.waiting }
        dead = entities.reduce(0) { $0 + $1.dead }
    }
}
