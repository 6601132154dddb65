/// Voids all cursors if the end of the log was lost.
package struct LostTailRound: PostgresRound {
    /// The outcome of a ``LostTailRound``.
    package enum Outcome: Int64, Sendable {
        /// The servers have the batch: nothing was lost.
        case unproven
        /// The cursors are void now.
        case voided
        /// The log has another id, so another node has voided them.
        case alreadyVoid
    }

    private let logID: UInt128
    private let evidence: BatchMark
    private let record: @Sendable (_ app: String) -> LogRecord
    private let batch: Int64
    private let link: UInt128
    private var generation: Int64 = 0

    /// Creates a round.
    ///
    /// - Parameters:
    ///   - logID: The id of the log whose end was lost.
    ///   - evidence: A batch that the log had.
    ///   - generator: Names the batch that is appended.
    ///   - record: Returns the record which tells the clients of an app that everything is stale.
    package init(
        _ logID: UInt128, evidence: BatchMark, using generator: inout some RandomNumberGenerator,
        record: @escaping @Sendable (_ app: String) -> LogRecord
    ) {
        self.logID = logID
        self.evidence = evidence
        self.record = record
        batch = Int64(generator.next() >> 1)
        link = UInt128(generator.next()) << 64 | UInt128(generator.next())
    }

    package mutating func begin() -> RoundStep<LostTailRequest, Outcome> { .send([.fence]) }

    package mutating func receive(
        _ answer: Result<LostTailRequest.Answer, PostgresError>
    ) -> RoundStep<LostTailRequest, Outcome> {
        switch answer {
        case .success(.fenced(let generation)):
            self.generation = generation
            return .send([.readApps])
        case .success(.apps(let apps)):
            let records = apps.map { record($0).encoded }
            return .send([
                .void(
                    generation: generation, batch: batch, link: link, logID: logID,
                    evidence: evidence,
                    count: Int64(records.count), records: Array(records.joined()))
            ])
        case .success(.ended(let outcome)): return .end(outcome)
        case .failure(let error): return .fail(error)
        }
    }
}

/// A request of a ``LostTailRound``.
package enum LostTailRequest: PostgresRequest, Equatable {
    /// Takes the node over.
    case fence
    /// Reads the names of all apps.
    case readApps
    /// Voids all cursors if the log does not have the evidence.
    case void(
        generation: Int64, batch: Int64, link: UInt128, logID: UInt128, evidence: BatchMark,
        count: Int64, records: [UInt8])

    /// The answer to a ``LostTailRequest``.
    package enum Answer: Sendable, Equatable {
        /// The generation of the node from here on.
        case fenced(Int64)
        /// The apps that have a catalog.
        case apps([String])
        case ended(LostTailRound.Outcome)
    }

    package static var statements: [PostgresStatement] { [fencing, apps, voiding] }

    private static let fencing = PostgresStatement(
        "fence-lost", sql: "SELECT o_generation FROM tg.fence()")
    private static let apps = PostgresStatement(
        "apps",
        sql: """
            SELECT DISTINCT c.app FROM tg.catalog c WHERE c.payload IS NOT NULL AND NOT EXISTS (
              SELECT FROM tg.catalog t WHERE t.app = c.app AND t.seq > c.seq AND t.payload IS NULL)
            ORDER BY c.app
            """)
    private static let voiding = PostgresStatement(
        "void-cursors",
        sql: """
            SELECT tg.void_cursors($1::bigint, $2::bigint, $3::bytea, $4::uuid, $5::bigint,
              $6::bigint, $7::bigint, $8::bytea)
            """)

    package var query: PostgresQuery {
        switch self {
        case .fence: PostgresQuery(Self.fencing)
        case .readApps: PostgresQuery(Self.apps)
        case .void(
            let generation, let batch, let link, let logID, let evidence, let count, let records):
            PostgresQuery(
                Self.voiding,
                [
                    .integer(generation), .integer(batch), .bytes(link.bytes), .uuid(logID),
                    .integer(evidence.last), .integer(Int64(evidence.tag)), .integer(count),
                    .bytes(records),
                ])
        }
    }

    package func answer(_ rows: [PostgresRow]) throws(PostgresError) -> Answer {
        switch self {
        case .fence:
            guard let row = rows.first else { throw .unexpectedAnswer }
            return .fenced(try row.integer(0))
        case .readApps:
            var apps: [String] = []
            for row in rows { apps.append(try row.text(0)) }
            return .apps(apps)
        case .void:
            guard let row = rows.first else { throw .unexpectedAnswer }
            guard let outcome = LostTailRound.Outcome(rawValue: try row.integer(0)) else {
                throw .unexpectedAnswer
            }
            return .ended(outcome)
        }
    }
}
