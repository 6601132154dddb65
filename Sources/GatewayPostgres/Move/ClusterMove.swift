/// Writes the store of one node into an empty log, in portions that may be sent again: a move that
/// was broken off begins anew and goes on. Until ``finish(_:)`` no node can write there.
package struct ClusterMove {
    private let connection: PostgresAdministration

    /// Uses the connection of an operator.
    package init(_ connection: PostgresAdministration) { self.connection = connection }

    /// Begins a move, or goes on with one.
    ///
    /// - Parameters:
    ///   - source: The random id of the store.
    ///   - floor: The sequence before its first record.
    ///   - head: The sequence of its last record.
    /// - Returns: The sequence up to which the log has arrived.
    /// - Throws: `PostgresError` with SQLSTATE `TG007` when the log is not empty, or another move is
    ///   under way.
    package func begin(source: Int64, floor: Int64, head: Int64) throws(PostgresError) -> Int64 {
        try number(
            "SELECT tg.begin_move($1, $2, $3)", [.integer(source), .integer(floor), .integer(head)])
    }

    /// Appends a batch, unless it is there.
    ///
    /// - Parameter id: Random bits that the chain is computed from.
    /// - Returns: The sequence up to which the log has arrived. If that is not the end of the batch, the
    ///   next batch must begin behind it.
    package func append(_ batch: MovedBatch, id: UInt128) throws(PostgresError) -> Int64 {
        let events = batch.events
        return try number(
            """
            SELECT tg.move_log($1, $2, uuid_send($3), $4, $5, $6, $7, $8)
            """,
            [
                .integer(batch.after), .integer(Int64(batch.records.count)), .uuid(id),
                .integer(batch.at), .bytes(batch.records.flatMap(\.encoded)),
                .uuids(events.map(\.key)), .integers(events.map(\.digest)),
                .smallIntegers(events.map(\.place)),
            ])
    }

    /// Writes registrations and their push addresses, unless they are there.
    package func write(_ rows: [MovedRegistration]) throws(PostgresError) {
        let contents = rows.map(\.content)
        try connection.rows(
            "SELECT tg.move_registrations($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            [
                .smallIntegers(rows.map { Int32($0.key.part) }), .texts(rows.map(\.key.app)),
                .texts(rows.map(\.key.client)), .integers(rows.map(\.revision)),
                .integers(contents.map(\.digest)),
                .texts(contents.map(\.attributes.arrayLiteral)),
                .texts(contents.map(\.tokens.arrayLiteral)), .integers(rows.map(\.updatedAt)),
                .smallIntegers(contents.map(\.seenDay)),
                .byteArrays(contents.map { $0.payload }),
            ])
    }

    /// Writes the push state of clients of one partition, unless it is there.
    package func write(_ rows: [PushStateRow], part: Int16) throws(PostgresError) {
        try connection.rows(
            "SELECT tg.move_states($1, $2, $3, $4, $5, $6)",
            [
                .smallIntegers(rows.map { _ in Int32(part) }), .texts(rows.map(\.name.app)),
                .texts(rows.map(\.name.client)), .integers(rows.map(\.told)),
                .booleans(rows.map(\.isOwed)), .byteArrays(rows.map { $0.payload }),
            ])
    }

    /// Writes catalogs, unless they are there.
    package func write(_ rows: [MovedCatalog]) throws(PostgresError) {
        try connection.rows(
            "SELECT tg.move_catalogs($1, $2, $3)",
            [
                .texts(rows.map(\.app)), .integers(rows.map(\.sequence)),
                .byteArrays(rows.map { $0.payload }),
            ])
    }

    /// Writes a secret that is in force at once, unless it is there.
    package func write(_ kind: SecretKind, name: String, wrapped: [UInt8]) throws(PostgresError) {
        try connection.rows(
            "SELECT tg.move_secret($1, $2, $3)",
            [.text(kind.rawValue), .text(name), .bytes(wrapped)])
    }

    /// Opens the log, if it is complete.
    ///
    /// - Parameter counts: The rows of the source.
    /// - Returns: Whether it was complete; if not, nothing has changed.
    package func finish(_ counts: MovedCounts) throws(PostgresError) -> Bool {
        let rows = try connection.rows(
            "SELECT tg.finish_move($1, $2, $3, $4)",
            [
                .integer(counts.registrations), .integer(counts.states), .integer(counts.catalogs),
                .integer(counts.secrets),
            ])
        guard let row = rows.first else { throw .unexpectedAnswer }
        return try row.boolean(0)
    }

    private func number(
        _ sql: String, _ values: [PostgresValue]
    ) throws(PostgresError) -> Int64 {
        guard let row = try connection.rows(sql, values).first else { throw .unexpectedAnswer }
        return try row.integer(0)
    }
}
