/// Writes the store of one node into an empty log, in portions that may be sent again: a move that
/// was broken off begins anew and goes on. Until ``finish(_:)`` no node can write there.
package struct ClusterMove {
    private let connection: PostgresAdministration

    /// Uses the connection of an operator.
    package init(_ connection: PostgresAdministration) { self.connection = connection }

    /// Begins a move, or goes on with one.
    ///
    /// - Parameters:
    ///   - source: The id of the store.
    ///   - floor: The sequence before its first record.
    ///   - head: The sequence of its last record.
    ///   - highestOrdinal: The highest ordinal of its epochs; 0 if it has none.
    /// - Returns: The sequence up to which the log has arrived; `nil` if all of the store was moved
    ///   here before.
    /// - Throws: `PostgresError` with SQLSTATE `TG007` when the log is not empty, or another move is
    ///   under way.
    package func begin(
        source: Int64, floor: Int64, head: Int64, highestOrdinal: UInt32
    ) throws(PostgresError) -> Int64? {
        let rows = try connection.rows(
            "SELECT tg.begin_move($1, $2, $3, $4)",
            [
                .integer(source), .integer(floor), .integer(head),
                .integer(Int64(highestOrdinal)),
            ])
        guard let row = rows.first else { throw .unexpectedAnswer }
        return row.isNull(0) ? nil : try row.integer(0)
    }

    /// Appends batches that follow one another, unless they are there.
    ///
    /// - Returns: The sequence up to which the log has arrived. If that is not the end of the last
    ///   batch, the next portion must begin behind it.
    package func append(_ batches: [MovedBatch]) throws(PostgresError) -> Int64 {
        var count: Int32 = 0
        var events: [MovedBatch.Event] = []
        for batch in batches {
            for var event in batch.events {
                event.place += count
                events.append(event)
            }
            count += Int32(clamping: batch.records.count)
        }
        return try number(
            "SELECT tg.move_log($1, $2, $3, $4, $5, $6, $7, $8)",
            [
                .integer(batches.first?.after ?? 0),
                .smallIntegers(batches.map { Int32(clamping: $0.records.count) }),
                // Random bits that the chain is computed from.
                .uuids(batches.map { _ in .random(in: 0 ... .max) }),
                .integers(batches.map(\.at)),
                .byteArrays(batches.map { $0.records.flatMap(\.encoded) }),
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

    /// Writes catalogs, unless they are there.
    package func write(_ rows: [MovedCatalog]) throws(PostgresError) {
        try connection.rows(
            "SELECT tg.move_catalogs($1, $2, $3)",
            [
                .texts(rows.map(\.app)), .integers(rows.map(\.sequence)),
                .byteArrays(rows.map { $0.payload }),
            ])
    }

    /// Writes epochs, unless they are there.
    package func write(_ rows: [MovedEpoch]) throws(PostgresError) {
        try connection.rows(
            "SELECT tg.move_epochs($1, $2, $3, $4)",
            [
                .integers(rows.map { Int64($0.ordinal) }), .integers(rows.map { Int64($0.nonce) }),
                .integers(rows.map(\.openedAt)), .booleans(rows.map(\.isVoid)),
            ])
    }

    /// Writes a secret, unless it is there.
    package func write(_ row: SecretRow) throws(PostgresError) {
        try connection.rows(
            "SELECT tg.move_secret($1, $2, $3, $4, $5)",
            [
                .text(row.kind), .text(row.name), .integer(row.notBefore),
                row.notAfter.map { .integer($0) } ?? .null, .bytes(row.wrapped),
            ])
    }

    /// Returns the secrets that are there.
    package func secrets() throws(PostgresError) -> [SecretRow] {
        let request = SecretRequest.read
        let rows = try connection.rows(request.query.statement.sql, request.query.values)
        guard case .secrets(let secrets, _) = try request.answer(rows) else {
            throw .unexpectedAnswer
        }
        return secrets
    }

    /// Opens the log, if it is complete.
    ///
    /// - Parameter counts: The rows of the source.
    /// - Returns: Whether it was complete; if not, nothing has changed.
    package func finish(_ counts: MovedCounts) throws(PostgresError) -> Bool {
        // Push state is not moved, so none may be there.
        let rows = try connection.rows(
            "SELECT tg.finish_move($1, 0, $2, $3, $4)",
            [
                .integer(counts.registrations), .integer(counts.catalogs),
                .integer(counts.epochs), .integer(counts.secrets),
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
