package enum RetentionRequest: PostgresRequest, Equatable {
    /// Reads the state of the log.
    case readLog
    /// Makes the slices that are missing.
    case makeSlices
    /// Moves the floor to the first batch of a slice.
    case moveFloor(toSlice: Int64)
    /// Detaches or drops one table below the floor.
    case removeTable

    /// The answer to a ``RetentionRequest``.
    package enum Answer: Sendable, Equatable {
        case log(RetentionPlan.Log)
        case made(Int64)
        case floor(Int64)
        /// The table; `nil` if there was none to remove.
        case removed(String?)
    }

    package static var statements: [PostgresStatement] { [reading, making, moving, removing] }

    private static let reading = PostgresStatement(
        "retention-log",
        sql: """
            SELECT (SELECT max(last) FROM tg.log), floor, slice,
              least((SELECT min(position) FROM tg.reservation WHERE until > clock_timestamp()),
                (SELECT min(position) FROM tg.snapshot_head)), tg.missing_slices()
            FROM tg.log_floor, tg.log_identity
            """)
    private static let making = PostgresStatement("slice", sql: "SELECT tg.slice()")
    private static let moving = PostgresStatement("retain", sql: "SELECT tg.retain($1::bigint)")
    private static let removing = PostgresStatement("retire", sql: "SELECT tg.retire()")

    package var query: PostgresQuery {
        switch self {
        case .readLog: PostgresQuery(Self.reading)
        case .makeSlices: PostgresQuery(Self.making)
        case .moveFloor(let slice): PostgresQuery(Self.moving, [.integer(slice)])
        case .removeTable: PostgresQuery(Self.removing)
        }
    }

    package func answer(_ rows: [PostgresRow]) throws(PostgresError) -> Answer {
        guard let row = rows.first else { throw .unexpectedAnswer }
        switch self {
        case .readLog:
            return .log(
                RetentionPlan.Log(
                    head: try row.integer(0), floor: try row.integer(1), slice: try row.integer(2),
                    oldestHold: row.isNull(3) ? nil : try row.integer(3),
                    missingSlices: try row.integer(4)))
        case .makeSlices: return .made(try row.integer(0))
        case .moveFloor: return .floor(try row.integer(0))
        case .removeTable: return .removed(row.isNull(0) ? nil : try row.text(0))
        }
    }
}
