/// A request of the feed. Each is a transaction of its own.
package enum ReadRequest: Sendable, Equatable {
    /// Listens for notifications.
    case listen
    /// Reads when the server started.
    case readStart
    /// Reads the newest position.
    case readHead
    /// Reads the settings that decide whether what was visible before is durable.
    case readDurability
    /// Reads batches in order, from the one that ends at the first bound through the last bound.
    case readBatches(from: Int64, through: Int64)
}

/// The answer to a ``ReadRequest``.
package enum ReadAnswer: Sendable, Equatable {
    case listening
    case started(at: Int64)
    case head(LogPosition)
    case durability(Durability)
    /// All batches were read; each was an event of its own.
    case batchesRead
}

extension ReadRequest: PostgresRequest {
    /// The maximum number of batches of one answer.
    static let batchesMax = 64

    /// The statements of a feed's session.
    package static let statements = [listening, starting, heading, settings, reading]

    private static let listening = PostgresStatement("listen", sql: "LISTEN log")
    private static let starting = PostgresStatement(
        "start",
        sql: "SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint")
    private static let heading = PostgresStatement(
        "head", sql: "SELECT last, chain FROM tg.log ORDER BY last DESC LIMIT 1")
    private static let settings = PostgresStatement(
        "settings",
        sql: """
            SELECT current_setting('synchronous_standby_names'), current_setting('fsync'),
              current_setting('full_page_writes')
            """)
    private static let reading = PostgresStatement(
        "batches", isStreamed: true,
        sql: """
            SELECT first, last, chain, node, at, CASE WHEN last > $1::bigint THEN body END
            FROM tg.log WHERE last >= $1::bigint AND last <= $2::bigint
            ORDER BY last LIMIT \(batchesMax)
            """)

    package var query: PostgresQuery {
        switch self {
        case .listen: PostgresQuery(Self.listening)
        case .readStart: PostgresQuery(Self.starting)
        case .readHead: PostgresQuery(Self.heading)
        case .readDurability: PostgresQuery(Self.settings)
        case .readBatches(let from, let through):
            PostgresQuery(Self.reading, [.integer(from), .integer(through)])
        }
    }

    /// Reads the answer from the rows of the query.
    ///
    /// - Throws: `PostgresError.unexpectedAnswer` when a row or column is missing.
    package func answer(_ rows: [PostgresRow]) throws(PostgresError) -> ReadAnswer {
        func first() throws(PostgresError) -> PostgresRow {
            guard let row = rows.first else { throw .unexpectedAnswer }
            return row
        }
        switch self {
        case .listen: return .listening
        case .readStart: return .started(at: try first().integer(0))
        case .readHead: return .head(try LogPosition(try first(), column: 0))
        case .readDurability: return .durability(try Durability(try first(), column: 0))
        case .readBatches: return .batchesRead
        }
    }
}

extension LogBatch {
    /// Reads a row of the statement for batches.
    ///
    /// - Throws: `PostgresError.unreadableRecord` when a record is of a newer form, or the records
    ///   are not as many as the sequences.
    init(_ row: PostgresRow) throws(PostgresError) {
        let head = BatchHead(
            first: try row.integer(0), position: try LogPosition(row, column: 1),
            at: try row.integer(4))
        let records = row.isNull(5) ? [] : try LogRecord.records(in: try row.bytes(5), of: head)
        self.init(
            first: head.first, position: head.position, node: try row.integer(3), at: head.at,
            records: records)
    }
}
