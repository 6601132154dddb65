/// A reading of the log, the catalogs or the registrations for the operators of a node.
package enum RecordRequest: PostgresRequest, Equatable {
    /// Reads the floor of the log, and the chain of the batch that ends at a sequence; says how the
    /// next statement is planned.
    case readState(at: Int64, PlanMode)
    /// Reads batches of a range in its direction; fewer if they are many or large together.
    case readBatches(BatchRange)
    /// Reads the heads of the batches that have sequences, in order and each once.
    case readHeads([Int64])
    /// Reads the catalog of an app that was in force before a sequence, unless the app was removed
    /// since, as of another one.
    case readCatalog(app: String, before: Int64, asOf: Int64)
    /// Reads a page of registrations.
    case readRegistrations(RegistrationListing)

    /// The answer to a ``RecordRequest``.
    package enum Answer: Sendable, Equatable {
        /// The floor, and the chain; `nil` if no batch ends there.
        case state(floor: Int64, chain: UInt128?)
        case batches([StoredBatch])
        case heads([BatchHead])
        /// The catalog and the sequence from which on it was in force; `nil` if there is none.
        case catalog(CatalogVersion?)
        case registrations(RegistrationListing.Page)
    }

    /// The way in which the server plans a prepared statement (`plan_cache_mode`).
    package enum PlanMode: String, Sendable {
        /// For its values, each time.
        case custom = "force_custom_plan"
        /// For any values, after a few times.
        case shared = "auto"
    }

    /// The way to plan it. Whether few or most of the registrations have an attribute decides by
    /// which index a page is read; in a plan for any value, a page of many takes seconds.
    var planMode: PlanMode {
        if case .readRegistrations(let listing) = self, listing.attribute != nil {
            .custom
        } else {
            .shared
        }
    }

    /// A version of an app's catalog.
    package struct CatalogVersion: Sendable, Equatable {
        package let sequence: Int64
        /// The content.
        package let payload: [UInt8]
    }

    /// The maximum number of batches of one answer.
    static let batchesMax = 1_000
    /// The bytes of bodies after which an answer ends.
    static let bytesMax = 1 << 20

    package var query: PostgresQuery {
        switch self {
        case .readState(let sequence, let mode):
            PostgresQuery(Self.state, [.integer(sequence), .text(mode.rawValue)])
        case .readBatches(let range):
            PostgresQuery(
                range.direction == .forwards ? Self.forwards : Self.backwards,
                [.integer(range.first), .integer(range.last)])
        case .readHeads(let sequences): PostgresQuery(Self.heads, [.integers(sequences)])
        case .readCatalog(let app, let before, let head):
            PostgresQuery(Self.catalog, [.text(app), .integer(before), .integer(head)])
        case .readRegistrations(let listing):
            PostgresQuery(
                listing.attribute == nil ? Self.registrations : Self.registrationsByAttribute,
                [
                    .text(listing.app), .text(listing.after), .text(listing.prefix),
                    // Texts are compared as bytes: all with the prefix sort before this end.
                    .text(listing.prefix + "\u{10FFFF}"),
                    // One row more than requested, to find out whether there are more.
                    .integer(listing.limit + 1), .integer(listing.bytesMax),
                ] + (listing.attribute.map { [.uuid($0)] } ?? []))
        }
    }

    package func answer(_ rows: [PostgresRow]) throws(PostgresError) -> Answer {
        switch self {
        case .readState:
            guard let row = rows.first else { throw .unexpectedAnswer }
            return .state(
                floor: try row.integer(0), chain: row.isNull(1) ? nil : try row.uuid(1))
        case .readBatches:
            var batches: [StoredBatch] = []
            for row in rows {
                batches.append(
                    StoredBatch(head: try BatchHead(row), body: try row.bytes(4)))
            }
            return .batches(batches)
        case .readHeads:
            var heads: [BatchHead] = []
            for row in rows { heads.append(try BatchHead(row)) }
            return .heads(heads)
        case .readCatalog:
            guard let row = rows.first, !row.isNull(1) else { return .catalog(nil) }
            return .catalog(
                CatalogVersion(sequence: try row.integer(0), payload: try row.bytes(1)))
        case .readRegistrations(let listing):
            return .registrations(try RegistrationListing.Page(rows, limit: Int(listing.limit)))
        }
    }
}

extension BatchHead {
    /// Reads first, last, chain and time.
    fileprivate init(_ row: PostgresRow) throws(PostgresError) {
        self.init(
            first: try row.integer(0), position: try LogPosition(row, column: 1),
            at: try row.integer(3))
    }
}

extension RegistrationListing.Page {
    /// Reads the rows of a page; there is one without a registration if there is none.
    fileprivate init(_ rows: [PostgresRow], limit: Int) throws(PostgresError) {
        guard let first = rows.first else { throw .unexpectedAnswer }
        self.init(rows: [], hasMore: false, head: try first.integer(0))
        guard !first.isNull(1) else { return }
        for row in rows.prefix(limit) {
            self.rows.append(
                RegistrationListing.Row(
                    client: try row.text(1), payload: try row.bytes(2),
                    updatedAt: try row.integer(3), seenDay: try row.integer(4)))
        }
        hasMore = try first.integer(5) > Int64(self.rows.count)
    }
}
