import Foundation
import GatewayStorage

/// The statements of a cluster's database.
enum ClusterDatabase {
    /// The format of the rows that this program reads and writes.
    static let format: Int64 = 1

    /// The most bytes of batches that one look reads; one batch is always read.
    private static let lookBytes: Int64 = 8 << 20

    /// The state of the cluster as one look at the database found it.
    struct View {
        let newest: ClusterPosition
        /// The id of the batch at the position of the store; `nil` if there is none.
        let ownID: UInt128?
        let lease: Lease.View
        /// Whether commits wait for a standby.
        let hasQuorum: Bool
        /// Whether a node had more of the log than the database has.
        let isShortened: Bool

        /// Whether the database lost the batch at the position of the store. One that is only gone
        /// is older than what is kept.
        func hasLost(_ position: ClusterPosition) -> Bool {
            ownID.map { $0 != position.id } ?? (newest.number < position.number)
        }
    }

    struct Batch {
        let position: ClusterPosition
        let head: UInt64
        /// Sealed.
        let body: [UInt8]

        init(_ row: PostgresRow, _ log: UInt128) throws(PostgresError) {
            position = ClusterPosition(log: log, number: try row.integer(0), id: try row.uuid(1))
            head = UInt64(bitPattern: try row.integer(2))
            body = try row.bytes(3)
        }
    }

    /// Returns what is new behind a position.
    static func look(
        _ connection: ClusterConnection, from position: ClusterPosition
    ) throws(PostgresError) -> (view: View, batches: [Batch]) {
        let number = PostgresValue.integer(position.number)
        let answers = try connection.run([
            (
                """
                SELECT n.number, n.id, (SELECT id FROM timeline.batch WHERE number = $1),
                  l.node, l.generation,
                  (extract(epoch FROM l.until - clock_timestamp()) * 1000)::bigint,
                  current_setting('synchronous_standby_names') <> '', c.lost IS NOT NULL, c.log_id
                FROM (SELECT number, id FROM timeline.batch ORDER BY number DESC LIMIT 1) n,
                  timeline.leader l, timeline.cluster c
                """, [number]
            ),
            batchesQuery(after: position.number),
        ])
        guard let row = answers[0].first else { throw .unexpectedAnswer }
        let log = try row.uuid(8)
        let view = View(
            newest: ClusterPosition(
                log: log, number: try row.integer(0), id: try row.uuid(1)),
            ownID: row.isNull(2) ? nil : try row.uuid(2),
            lease: Lease.View(
                node: row.isNull(3) ? nil : try row.text(3), generation: try row.integer(4),
                left: try row.integer(5)),
            hasQuorum: try row.boolean(6), isShortened: try row.boolean(7))
        return (view, try answers[1].map { row throws(PostgresError) in try Batch(row, log) })
    }

    /// Returns batches behind a number: as many as are read at once.
    static func batches(
        _ connection: ClusterConnection, after number: Int64, _ log: UInt128,
        within milliseconds: Int64
    ) throws(PostgresError) -> [Batch] {
        try connection.run([batchesQuery(after: number)], within: milliseconds)[0].map {
            row throws(PostgresError) in try Batch(row, log)
        }
    }

    /// Returns whether every batch behind a position is kept.
    static func hasAll(
        behind position: ClusterPosition, _ connection: ClusterConnection
    ) throws(PostgresError) -> Bool {
        try connection.rows(
            """
            SELECT coalesce(max(number), $1) - $1 = count(*) FROM timeline.batch WHERE number > $1
            """, [.integer(position.number)], within: 60_000
        ).first?.boolean(0) == true
    }

    private static func batchesQuery(after number: Int64) -> ClusterConnection.Query {
        (
            """
            SELECT number, id, head, body FROM (
              SELECT *, sum(length(body)) OVER (ORDER BY number) - length(body) AS before
              FROM (SELECT * FROM timeline.batch WHERE number > $1 ORDER BY number LIMIT 1000) b
            ) b WHERE before < $2 ORDER BY number
            """, [.integer(number), .integer(lookBytes)]
        )
    }

    /// The name of a batch's row, for its seal.
    static func place(of position: ClusterPosition) -> String {
        "batch \(position.number) of \(position.log)"
    }

    /// The name of an item's row, for its seal.
    static func place(of key: ItemChanges.Key, in log: UInt128) -> String {
        "item \(key.kind.rawValue) \(key.app.utf8.count) \(key.app) \(key.key) of \(log)"
    }

    /// Appends a batch after a position; returns whether commits wait for a standby, as read after
    /// the commit. Before that, nobody may be told of the batch.
    static func append(
        _ operations: [StoreOperation], head: UInt64, from previous: ClusterPosition,
        to position: ClusterPosition, generation: Int64, _ connection: ClusterConnection,
        _ seal: Seal
    ) throws -> Bool {
        var body: [UInt8] = []
        for operation in operations { operation.append(to: &body) }
        let changes = ItemChanges(operations)
        let answers = try connection.run([
            (
                "CALL timeline.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
                [
                    .integer(generation), .integer(previous.number), .uuid(previous.id),
                    .uuid(position.id), .integer(Int64(bitPattern: head)),
                    .bytes(try seal.seal(body, for: place(of: position))),
                    .boolean(operations.contains(where: \.isOfLog)),
                    .texts(changes.goneApps.sorted()),
                ] + (try items(changes, in: position.log, seal))
                    + [.integer(Int64(bitPattern: changes.floor))]
            ),
            (
                """
                SELECT current_setting('synchronous_standby_names') <> '', pg_notify('timeline', '')
                """, []
            ),
        ])
        return try answers[1].first?.boolean(0) == true
    }

    /// Returns the columns of items: kinds, apps, keys and sealed values (`NULL` if removed).
    static func items(
        _ changes: ItemChanges, in log: UInt128, _ seal: Seal
    ) throws(Seal.Fault) -> [PostgresValue] {
        var kinds: [Int32] = []
        var apps: [String] = []
        var keys: [String] = []
        var contents: [[UInt8]?] = []
        for (key, operation) in changes.values {
            kinds.append(key.kind.rawValue)
            apps.append(key.app)
            keys.append(key.key)
            var bytes: [UInt8] = []
            operation?.append(to: &bytes)
            contents.append(
                operation == nil ? nil : try seal.seal(bytes, for: place(of: key, in: log)))
        }
        return [.smallIntegers(kinds), .texts(apps), .texts(keys), .byteArrays(contents)]
    }

    /// Records that the node lives, and renews its lease. Waits for the quorum as an append does,
    /// so that what was visible before is durable.
    ///
    /// - Parameters:
    ///   - begins: Whether the node begins, and takes the name from another process that has it.
    ///   - generation: The generation of the lease; `nil` without it.
    /// - Returns: Whether the lease was renewed, and the start that had the name before; `nil` for
    ///   a new name.
    static func present(
        _ node: ClusterNode.Configuration, at position: ClusterPosition, begins: Bool = false,
        generation: Int64?, _ connection: ClusterConnection
    ) throws(PostgresError) -> (isRenewed: Bool, start: UInt128?) {
        let row = try connection.rows(
            """
            WITH before AS (SELECT start FROM timeline.node WHERE name = $1), me AS (
              INSERT INTO timeline.node VALUES ($1, $2, $3, $4::bigint, clock_timestamp())
              ON CONFLICT (name) DO UPDATE SET start = excluded.start,
                position = excluded.position, format = excluded.format, seen = excluded.seen
              WHERE $7 OR node.start = excluded.start),
            renewed AS (
              UPDATE timeline.leader SET until = clock_timestamp() + $5::bigint * interval '1 ms'
              WHERE node = $1 AND generation = $6 RETURNING 1)
            SELECT EXISTS (SELECT 1 FROM renewed), (SELECT start FROM before)
            """,
            [
                .text(node.name), .uuid(node.start), .integer(position.number),
                .integer(format), .integer(Lease.duration),
                generation.map { .integer($0) } ?? .null, .boolean(begins),
            ]
        ).first
        guard let row else { throw .unexpectedAnswer }
        return (try row.boolean(0), row.isNull(1) ? nil : try row.uuid(1))
    }

    /// Takes the lease in place of a generation; returns the new one, or `nil` if another node was
    /// faster, or the one that holds it has renewed it since.
    static func take(
        _ node: String, from generation: Int64, _ connection: ClusterConnection
    ) throws(PostgresError) -> Int64? {
        try connection.rows(
            """
            UPDATE timeline.leader SET node = $1, generation = generation + 1,
              until = clock_timestamp() + $2::bigint * interval '1 ms'
            WHERE generation = $3
              AND (node = $1 OR until < clock_timestamp()
                OR until > clock_timestamp() + $4::bigint * interval '1 ms')
            RETURNING generation
            """,
            [
                .text(node), .integer(Lease.duration), .integer(generation),
                .integer(Lease.leftMax),
            ]
        ).first?.integer(0)
    }

    /// Returns the names of the other nodes that lived a moment ago.
    static func others(
        than node: String, _ connection: ClusterConnection
    ) throws(PostgresError) -> [String] {
        try connection.rows(
            """
            SELECT name FROM timeline.node
            WHERE name <> $1 AND seen > clock_timestamp() - interval '10 s'
            """, [.text(node)]
        ).map { row throws(PostgresError) in try row.text(0) }
    }

    /// Lets another node take the lease at once.
    static func release(
        _ generation: Int64, _ connection: ClusterConnection
    ) throws(PostgresError) {
        try connection.rows(
            "UPDATE timeline.leader SET until = 'epoch' WHERE generation = $1",
            [.integer(generation)])
    }

    /// Records that a node has more of the log than the database, unless everything that the node
    /// can have told clients was voided since.
    ///
    /// - Parameter epoch: The newest epoch that the node knows.
    static func reportLoss(
        of position: ClusterPosition, epoch: Int64, _ connection: ClusterConnection
    ) throws(PostgresError) {
        try connection.rows(
            "UPDATE timeline.cluster SET lost = greatest(lost, $1) WHERE voided <= $2",
            [.integer(position.number), .integer(epoch)])
    }

    /// Forgets a loss: an epoch has made everything older void.
    static func forgetLoss(
        at epoch: Int64, _ connection: ClusterConnection
    ) throws(PostgresError) {
        try connection.rows(
            "UPDATE timeline.cluster SET lost = NULL, voided = $1", [.integer(epoch)])
    }
}
