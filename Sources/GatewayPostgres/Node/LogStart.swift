/// The place from which a node reads the log, with what lies before it.
package struct LogStart: Sendable, Equatable {
    /// A catalog, or the removal of an app.
    package struct Catalog: Sendable, Equatable {
        package let app: String
        package let sequence: Int64
        /// The catalog; `nil` for a removal.
        package let payload: [UInt8]?
    }

    /// An epoch of the store that was moved here, or this log as the last one.
    package struct Epoch: Sendable, Equatable {
        /// Its number.
        package let ordinal: UInt32
        /// The number that distinguishes it from others with this ordinal.
        package let nonce: UInt32
        /// The sequence at which the epoch before it ends.
        package let openedAt: Int64
        /// Whether its cursors, and those of older epochs, are void.
        package let isVoid: Bool
    }

    /// The batch after which the log is read.
    package var position = LogPosition(last: 0, chain: 0)
    /// The epochs, the oldest first.
    package var epochs: [Epoch] = []
    /// Of each app the newest catalog up to ``position`` and its newest removal up to there; those
    /// of one app in order.
    package var catalogs: [Catalog] = []

    /// The beginning of a log.
    package init() {}
}

/// Reads the ``LogStart``.
package struct LogStartRound: PostgresRound {
    /// The maximum number of catalogs in one answer.
    static let catalogsMax = 64

    private var start = LogStart()

    /// Creates a round.
    ///
    /// - Parameter position: The batch after which the log is read, which must be reserved.
    package init(at position: LogPosition) { start.position = position }

    package mutating func begin() -> RoundStep<LogStartRequest, LogStart> {
        .send([.readEpochs, .readCatalogs(through: start.position.last, after: "", 0)])
    }

    package mutating func receive(
        _ answer: Result<LogStartRequest.Answer, PostgresError>
    ) -> RoundStep<LogStartRequest, LogStart> {
        switch answer {
        case .success(.epochs(let epochs)):
            start.epochs = epochs
            return .send([])
        case .success(.catalogs(let catalogs)):
            start.catalogs += catalogs
            guard catalogs.count == Self.catalogsMax, let last = catalogs.last else {
                return .end(start)
            }
            return .send([
                .readCatalogs(through: start.position.last, after: last.app, last.sequence)
            ])
        case .failure(let error): return .fail(error)
        }
    }
}

/// A request for a part of the ``LogStart``.
package enum LogStartRequest: PostgresRequest, Equatable {
    case readEpochs
    /// Reads catalogs up to a position, behind one of an app at a sequence.
    case readCatalogs(through: Int64, after: String, Int64)

    /// The answer to a ``LogStartRequest``.
    package enum Answer: Sendable, Equatable {
        case epochs([LogStart.Epoch])
        case catalogs([LogStart.Catalog])
    }

    package static var statements: [PostgresStatement] { [epochs, catalogs] }

    private static let epochs = PostgresStatement(
        "epochs", sql: "SELECT ordinal, nonce, opened_at, is_void FROM tg.epoch ORDER BY ordinal")
    private static let catalogs = PostgresStatement(
        "start-catalogs",
        sql: """
            SELECT app, seq, payload FROM tg.catalog c
            WHERE seq <= $1::bigint AND (app, seq) > ($2::text, $3::bigint) AND NOT EXISTS (
              SELECT FROM tg.catalog t WHERE t.app = c.app AND t.seq > c.seq
                AND t.seq <= $1::bigint AND (t.payload IS NULL OR c.payload IS NOT NULL))
            ORDER BY app, seq LIMIT \(LogStartRound.catalogsMax)
            """)

    package var query: PostgresQuery {
        switch self {
        case .readEpochs: PostgresQuery(Self.epochs)
        case .readCatalogs(let position, let app, let sequence):
            PostgresQuery(Self.catalogs, [.integer(position), .text(app), .integer(sequence)])
        }
    }

    package func answer(_ rows: [PostgresRow]) throws(PostgresError) -> Answer {
        switch self {
        case .readEpochs:
            var epochs: [LogStart.Epoch] = []
            for row in rows {
                epochs.append(
                    LogStart.Epoch(
                        ordinal: UInt32(truncatingIfNeeded: try row.integer(0)),
                        nonce: UInt32(truncatingIfNeeded: try row.integer(1)),
                        openedAt: try row.integer(2), isVoid: try row.boolean(3)))
            }
            return .epochs(epochs)
        case .readCatalogs:
            var catalogs: [LogStart.Catalog] = []
            for row in rows {
                catalogs.append(
                    LogStart.Catalog(
                        app: try row.text(0), sequence: try row.integer(1),
                        payload: row.isNull(2) ? nil : try row.bytes(2)))
            }
            return .catalogs(catalogs)
        }
    }
}
