extension WriteRequest: PostgresRequest {
    /// The statements of a writer's session.
    package static let statements = [
        Self.identification, Self.fencing, Self.search, Self.probing, Self.appending,
        Self.appendingRows, Self.settings, Self.readingRows, Self.listing, Self.deletion,
    ]

    private static let identification = PostgresStatement(
        "identify",
        sql: """
            SELECT (SELECT max(version) FROM tg.migration), log_id,
              (SELECT chain FROM tg.log WHERE last = $1::bigint),
              (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
              current_setting('synchronous_standby_names'), current_setting('fsync'),
              current_setting('full_page_writes'), pg_backend_pid(),
              pg_has_role('tg_owner', 'MEMBER')
            FROM tg.log_identity
            """)
    private static let fencing = PostgresStatement(
        "fence", sql: "SELECT o_generation FROM tg.fence()")
    private static let search = PostgresStatement(
        "find",
        sql: """
            SELECT last, chain FROM tg.log WHERE last > $1::bigint AND batch = $2::bigint
              AND node = (SELECT node FROM tg.node WHERE login = session_user)
            """)
    /// One statement, so that all is of one snapshot. The first column tells what a row is.
    private static let probing = PostgresStatement(
        "probe",
        sql: """
            SELECT 0, (SELECT max(last) FROM tg.log), NULL::bigint, NULL::uuid, NULL::int,
              NULL::text, NULL::text
            UNION ALL SELECT 1, e.seq, e.digest, e.key, NULL, NULL, NULL
            FROM tg.event e WHERE e.key = ANY ($1::uuid[])
            UNION ALL SELECT 2, (SELECT max(c.seq) FROM tg.catalog c WHERE c.app = k.app),
              (SELECT max(c.seq) FROM tg.catalog c WHERE c.app = k.app AND c.payload IS NULL),
              NULL, NULL, k.app, NULL
            FROM unnest($2::text[]) k(app)
            UNION ALL SELECT 3, r.revision, NULL, NULL, k.part, k.app, k.client
            FROM unnest($3::int[], $4::text[], $5::text[]) k(part, app, client)
            CROSS JOIN LATERAL (
              SELECT revision FROM tg.live_registration r
              WHERE r.part = k.part AND r.app = k.app AND r.client = k.client LIMIT 1) r
            UNION ALL SELECT 4, NULL, NULL, p.token, p.part, p.app, p.client
            FROM tg.push_address p WHERE p.token = ANY ($6::uuid[])
            """)
    private static let appending = PostgresStatement(
        "append",
        sql: """
            CALL tg.commit_append($1::bigint, $2::bigint, $3::bytea, $4::bigint, $5::bigint,
              $6::uuid[], $7::bigint[], $8::int[], $9::bytea, $10::text[], NULL, NULL, NULL, NULL,
              NULL)
            """)
    /// The same with rows of tables.
    private static let appendingRows = PostgresStatement(
        "append-rows",
        sql: """
            CALL tg.commit_append($1::bigint, $2::bigint, $3::bytea, $4::bigint, $5::bigint,
              $6::uuid[], $7::bigint[], $8::int[], $9::bytea, $10::text[],
              ROW($11::text[], $12::int[], $13::bytea[])::tg.catalog_writes,
              ROW($14::int[], $15::text[], $16::text[], $17::bigint[], $18::bigint[],
                $19::bigint[], $20::bigint[], $21::text[], $22::text[], $23::int[],
                $24::bytea[])::tg.registration_writes,
              ROW($25::uuid[], $26::int[], $27::int[], $28::text[], $29::text[])::tg.address_claims,
              NULL, NULL)
            """)
    private static let settings = PostgresStatement(
        "settings",
        sql: """
            SELECT current_setting('synchronous_standby_names'), current_setting('fsync'),
              current_setting('full_page_writes'),
              CASE WHEN $1::boolean THEN pg_notify('log', '')::text END
            """)
    private static let readingRows = PostgresStatement(
        "rows",
        sql: """
            SELECT h.head, r.part, r.app, r.client, r.revision, r.digest, r.updated_at, r.seen_day,
              r.payload, r.attrs, r.tokens, ARRAY(
                SELECT t.token FROM unnest(r.tokens) t(token)
                JOIN tg.push_address p ON p.token = t.token
                WHERE p.part = r.part AND p.app = r.app AND p.client = r.client)
            FROM (SELECT max(last) AS head FROM tg.log) h LEFT JOIN (
              unnest($1::int[], $2::text[], $3::text[]) k(part, app, client)
              CROSS JOIN LATERAL (
                SELECT * FROM tg.live_registration r
                WHERE r.part = k.part AND r.app = k.app AND r.client = k.client LIMIT 1) r) ON true
            """)
    private static let listing = PostgresStatement(
        "clients",
        sql: """
            SELECT part, app, client FROM tg.live_registration
            WHERE attrs @> ARRAY[$1::uuid] AND app = $2::text AND client > $3::text COLLATE "C"
            ORDER BY client COLLATE "C" LIMIT $4::bigint
            """)
    private static let deletion = PostgresStatement(
        "delete", sql: "SELECT tg.delete_removed($1::bigint::int)")

    package var query: PostgresQuery {
        switch self {
        case .identify(let last): PostgresQuery(Self.identification, [.integer(last)])
        case .fence: PostgresQuery(Self.fencing)
        case .find(let batch, let after):
            PostgresQuery(Self.search, [.integer(after), .integer(batch)])
        case .probe(let probe):
            PostgresQuery(
                Self.probing,
                [.uuids(probe.events), .texts(probe.apps)] + Self.columns(probe.registrations)
                    + [.uuids(probe.tokens)])
        case .append(let call):
            call.hasRows
                ? PostgresQuery(Self.appendingRows, call.values + call.rowValues)
                : PostgresQuery(Self.appending, call.values)
        case .readDurability(let notifies): PostgresQuery(Self.settings, [.boolean(notifies)])
        case .read(.rows(let keys, _)): PostgresQuery(Self.readingRows, Self.columns(keys))
        case .read(.clients(let attribute, let app, let after, let limit)):
            PostgresQuery(
                Self.listing, [.uuid(attribute), .text(app), .text(after), .integer(Int64(limit))])
        case .deleteRemoved(let count):
            PostgresQuery(Self.deletion, [.integer(Int64(count))])
        }
    }

    /// The parts, apps and clients of keys.
    fileprivate static func columns(_ keys: [RegistrationKey]) -> [PostgresValue] {
        [
            .smallIntegers(keys.map { Int32($0.part) }), .texts(keys.map(\.app)),
            .texts(keys.map(\.client)),
        ]
    }

    /// Reads the answer from the rows of the query.
    ///
    /// - Throws: `PostgresError.unexpectedAnswer` when a row or column is missing.
    package func answer(_ rows: [PostgresRow]) throws(PostgresError) -> WriteAnswer {
        switch self {
        case .find where rows.isEmpty: return .found(nil)
        case .read(.clients):
            var keys: [RegistrationKey] = []
            for row in rows { keys.append(try RegistrationKey(row, column: 0)) }
            return .read(.clients(keys))
        default: break
        }
        guard let row = rows.first else { throw .unexpectedAnswer }
        switch self {
        case .identify:
            return .identified(
                ServerIdentity(
                    version: try row.integer(0), logID: try row.uuid(1),
                    chain: row.isNull(2) ? nil : try row.uuid(2),
                    durability: try Durability(row, column: 4), startedAt: try row.integer(3),
                    process: Int32(truncatingIfNeeded: try row.integer(7)),
                    isPrivileged: try row.boolean(8)))
        case .fence: return .fenced(generation: try row.integer(0))
        case .find: return .found(try LogPosition(row, column: 0))
        case .probe: return .probed(try ProbeResult(rows))
        case .append: return .appended(try LogPosition(row, column: 0))
        case .readDurability: return .durability(try Durability(row, column: 0))
        case .read:
            var found: [RegistrationKey: RegistrationRow] = [:]
            for row in rows where !row.isNull(1) {
                let registration = try RegistrationRow(row)
                found[registration.key] = registration
            }
            return .read(.rows(found, head: try row.integer(0)))
        case .deleteRemoved: return .deleted(hasMore: try row.boolean(0))
        }
    }
}

extension AppendCall {
    /// Whether the call writes other rows than those of the log and its events.
    fileprivate var hasRows: Bool { !catalogs.isEmpty || !registrations.isEmpty }

    fileprivate var values: [PostgresValue] {
        [
            .integer(generation), .integer(batch), .bytes(link.bytes), .integer(count),
            .integer(probed), .uuids(keys), .integers(digests), .smallIntegers(places),
            .bytes(records), .texts(apps),
        ]
    }

    fileprivate var rowValues: [PostgresValue] {
        let contents = registrations.map(\.content)
        let owners = claims.map { $0.owner ?? RegistrationKey(part: -1, app: "", client: "") }
        return [
            .texts(catalogs.map(\.app)), .smallIntegers(catalogs.map(\.place)),
            .byteArrays(catalogs.map(\.payload)),
        ] + WriteRequest.columns(registrations.map(\.key)) + [
            .integers(registrations.map(\.base)), .integers(registrations.map(\.removal)),
            .integers(registrations.map(\.revision)),
            .integers(contents.map { $0?.digest ?? 0 }),
            .texts(contents.map { ($0?.attributes ?? []).arrayLiteral }),
            .texts(contents.map { ($0?.tokens ?? []).arrayLiteral }),
            .smallIntegers(contents.map { $0?.seenDay ?? 0 }),
            .byteArrays(contents.map { $0?.payload }),
            .uuids(claims.map(\.token)), .smallIntegers(claims.map(\.place)),
        ] + WriteRequest.columns(owners)
    }
}

extension ProbeResult {
    /// Reads the rows of the probe.
    fileprivate init(_ rows: [PostgresRow]) throws(PostgresError) {
        self.init(head: -1)
        for row in rows {
            switch try row.integer(0) {
            case 0: head = try row.integer(1)
            case 1:
                events[try row.uuid(3)] = KnownEvent(
                    sequence: try row.integer(1), digest: try row.integer(2))
            case 2 where !row.isNull(1):
                apps[try row.text(5)] = App(
                    newest: try row.integer(1), removal: row.isNull(2) ? 0 : try row.integer(2))
            case 3: revisions[try RegistrationKey(row, column: 4)] = try row.integer(1)
            case 4: owners[try row.uuid(3)] = try RegistrationKey(row, column: 4)
            default: break
            }
        }
        guard head >= 0 else { throw .unexpectedAnswer }
    }
}

extension RegistrationKey {
    /// Reads part, app and client, from the column with this index.
    fileprivate init(_ row: PostgresRow, column: Int) throws(PostgresError) {
        self.init(
            part: Int16(truncatingIfNeeded: try row.integer(column)),
            app: try row.text(column + 1), client: try row.text(column + 2))
    }
}

extension RegistrationRow {
    /// Reads a row of the statement for rows.
    fileprivate init(_ row: PostgresRow) throws(PostgresError) {
        self.init(
            key: try RegistrationKey(row, column: 1), revision: try row.integer(4),
            content: RegistrationContent(
                digest: try row.integer(5), attributes: try row.uuids(9),
                tokens: try row.uuids(10),
                seenDay: Int32(truncatingIfNeeded: try row.integer(7)), payload: try row.bytes(8)),
            ownTokens: Set(try row.uuids(11)), updatedAt: try row.integer(6))
    }
}

extension [UInt128] {
    /// An array of `uuid` as text, for an element of a `text[]`: arrays of different lengths make
    /// no array in PostgreSQL.
    var arrayLiteral: String {
        let digits = map { number in
            let text = String(number, radix: 16)
            return String(repeating: "0", count: 32 - text.count) + text
        }
        return "{" + digits.joined(separator: ",") + "}"
    }
}

extension UInt128 {
    /// The 16 bytes, the most significant first.
    var bytes: [UInt8] {
        (0..<16).map { UInt8(truncatingIfNeeded: self >> (120 - 8 * UInt128($0))) }
    }
}
