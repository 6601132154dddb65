/// Sealing anew, after a change of the cluster's key.
extension ClusterAdministration {
    /// Batches, then items, each with two statements: one reads the next values that another key
    /// sealed, in the order of kind, app and key; one replaces those that are the same still.
    private static let sealed: [(select: String, update: String)] = [
        (
            """
            SELECT body, 0, '', number::text, id FROM timeline.batch b
            WHERE ($1::bigint, $2::text) IS NOT NULL AND number > $3::text::bigint
              AND substring(body FROM 2 FOR 4) <> $4 ORDER BY b.number LIMIT 50
            """,
            """
            UPDATE timeline.batch t SET body = u.new FROM
              unnest($1::int[], $2::text[], $3::text[], $4::bytea[], $5::bytea[]) u(kind, app, key, old, new)
            WHERE t.number = u.key::bigint AND t.body = u.old RETURNING 1
            """
        ),
        (
            """
            SELECT value, kind, app, key, NULL::uuid FROM timeline.item
            WHERE (kind, app, key) > ($1::bigint, $2, $3)
              AND substring(value FROM 2 FOR 4) <> $4 ORDER BY kind, app, key LIMIT 500
            """,
            """
            UPDATE timeline.item t SET value = u.new FROM
              unnest($1::int[], $2::text[], $3::text[], $4::bytea[], $5::bytea[]) u(kind, app, key, old, new)
            WHERE (t.kind, t.app, t.key) = (u.kind, u.app, u.key) AND t.value = u.old RETURNING 1
            """
        ),
    ]

    /// Seals with the current key what older keys sealed; repeatable, also while nodes run.
    ///
    /// - Parameter report: Called with the number of rows so far.
    /// - Returns: The rows sealed anew, and the rows that nodes with another key wrote meanwhile.
    /// - Throws: `PostgresError`; ``Seal/Fault`` for a row of a key that is not given.
    package func reseal(
        _ seal: Seal, report: (_ rows: Int) -> Void
    ) throws -> (rows: Int, left: Int64) {
        // The old key may be thrown away afterwards: no commit may be lost.
        try connection.execute("SET synchronous_commit = 'on'; SET lock_timeout = '10 s'")
        let cluster = try connection.rows("SELECT log_id, secrets FROM timeline.cluster").first
        guard let cluster else { throw PostgresError.unexpectedAnswer }
        let log = try cluster.uuid(0)
        let secrets = try seal.open(try cluster.bytes(1), for: ClusterStart.secretsPlace)
        try storeSecrets(secrets, seal)
        let current = PostgresValue.bytes(seal.currentKey)
        var rows = 0
        for (select, update) in Self.sealed {
            var last: [PostgresValue] = [.integer(0), .text(""), .text("0")]
            while true {
                let found = try connection.rows(select, last + [current])
                guard let end = found.last else { break }
                last = [
                    .integer(try end.integer(1)), .text(try end.text(2)), .text(try end.text(3)),
                ]
                let old = try found.map { try $0.bytes(0) }
                let new = try zip(found, old).map { row, value in
                    let place = try Self.place(of: row, in: log)
                    return try seal.seal(try seal.open(value, for: place), for: place)
                }
                let values: [PostgresValue] = [
                    .smallIntegers(try found.map { Int32(clamping: try $0.integer(1)) }),
                    .texts(try found.map { try $0.text(2) }),
                    .texts(try found.map { try $0.text(3) }), .byteArrays(old), .byteArrays(new),
                ]
                try connection.transaction { () throws(PostgresError) in
                    // In the turn of the leader's appends: neither waits for rows of the other.
                    try connection.execute("SELECT FROM timeline.leader FOR UPDATE")
                    rows += try connection.rows(update, values).count
                }
                report(rows)
            }
        }
        let left = try connection.rows(
            """
            SELECT (SELECT count(*) FROM timeline.batch
                WHERE number > 0 AND substring(body FROM 2 FOR 4) <> $1)
              + (SELECT count(*) FROM timeline.item WHERE substring(value FROM 2 FOR 4) <> $1)
            """, [current]
        ).first?.integer(0)
        return (rows, left ?? 0)
    }

    /// The name of a row of ``sealed``, for its seal.
    private static func place(of row: PostgresRow, in log: UInt128) throws -> String {
        let key = try row.text(3)
        guard let kind = ItemChanges.Kind(rawValue: Int32(clamping: try row.integer(1))) else {
            return ClusterDatabase.place(
                of: ClusterPosition(log: log, number: Int64(key) ?? -1, id: try row.uuid(4)))
        }
        return ClusterDatabase.place(
            of: ItemChanges.Key(kind: kind, app: try row.text(2), key: key), in: log)
    }
}
