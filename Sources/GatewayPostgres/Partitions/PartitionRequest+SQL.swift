extension PartitionRequest: PostgresRequest {
    /// The maximum number of rows of a portion.
    static let portionMax = 500

    /// The statements of the session; the identity is asked for as the writer does.
    package static let statements = [
        WriteRequest.identify(at: 0).query.statement,
        WriteRequest.readDurability(notifies: false).query.statement, attaching, renewing, taking,
        releasing, flushing, hearing, registrations, states, evidence, forgetting,
    ]

    private static let attaching = PostgresStatement(
        "attach", sql: "SELECT tg.attach($1::bigint, $2::boolean)")
    private static let renewing = PostgresStatement(
        "renew",
        sql: """
            SELECT o_node, o_parts, o_generations, o_nodes, o_beats, o_serving
            FROM tg.renew($1::boolean, $2::text::jsonb)
            """)
    private static let taking = PostgresStatement(
        "take",
        sql: """
            SELECT o_part, o_generation FROM tg.take($1::int[], $2::int[], $3::bigint[])
            ORDER BY o_part
            """)
    private static let releasing = PostgresStatement(
        "release", sql: "SELECT tg.release($1::int[], $2::bigint[])")
    private static let flushing = PostgresStatement(
        "flush",
        sql: """
            CALL tg.commit_flush($1::int[], $2::bigint[], $3::bigint[], $4::int[], $5::text[],
              $6::text[], $7::bigint[], $8::boolean[], $9::bytea[], NULL)
            """)
    private static let hearing = PostgresStatement(
        "hear",
        sql: "SELECT tg.hear($1::int[], $2::text[], $3::text[], $4::boolean[], $5::bigint[])")
    /// One statement, so that head and rows are of one snapshot.
    private static let registrations = PostgresStatement(
        "registrations",
        sql: """
            SELECT h.head, r.app, r.client, r.payload, ARRAY(
                SELECT t.token FROM unnest(r.tokens) t(token)
                JOIN tg.push_address p ON p.token = t.token
                WHERE p.part = r.part AND p.app = r.app AND p.client = r.client)
            FROM (SELECT max(last) AS head FROM tg.log) h LEFT JOIN LATERAL (
              SELECT * FROM tg.live_registration WHERE part = $1::bigint::smallint
                AND (app, client) > ($2::text, $3::text)
              ORDER BY app, client LIMIT \(portionMax)) r ON true
            """)
    private static let states = PostgresStatement(
        "states",
        sql: """
            SELECT h.head, o.clear, s.app, s.client, s.told, s.owed, s.payload
            FROM (SELECT max(last) AS head FROM tg.log) h
            JOIN tg.owner o ON o.part = $1::bigint LEFT JOIN LATERAL (
              SELECT * FROM tg.push_state WHERE part = $1::bigint::smallint
                AND (app, client) > ($2::text, $3::text)
              ORDER BY app, client LIMIT \(portionMax)) s ON true
            """)
    private static let evidence = PostgresStatement(
        "evidence",
        sql: """
            SELECT u.place, max(h.upto), coalesce(bool_or(h.open AND s.process = h.process
              AND s.until BETWEEN clock_timestamp() AND clock_timestamp() + interval '30 s'), false)
            FROM unnest($1::int[], $2::text[], $3::text[])
              WITH ORDINALITY u(part, app, client, place)
            JOIN tg.heard h ON h.part = u.part AND h.app = u.app AND h.client = u.client
            LEFT JOIN tg.node_seen s ON s.node = h.node
            GROUP BY u.place
            """)
    private static let forgetting = PostgresStatement(
        "forget", sql: "SELECT tg.forget_heard($1::int[])")

    package var query: PostgresQuery {
        switch self {
        case .identify(let last): return WriteRequest.identify(at: last).query
        case .readDurability: return WriteRequest.readDurability(notifies: false).query
        case .attach(let process, let isForced):
            return PostgresQuery(Self.attaching, [.integer(process), .boolean(isForced)])
        case .renew(let serves, let load):
            return PostgresQuery(
                Self.renewing, [.boolean(serves), load.map { .text($0) } ?? .null])
        case .take(let numbers, let silent):
            return PostgresQuery(
                Self.taking,
                [
                    .smallIntegers(numbers), .smallIntegers(silent.map(\.node)),
                    .integers(silent.map(\.beat)),
                ])
        case .release(let partitions):
            return PostgresQuery(
                Self.releasing,
                [
                    .smallIntegers(partitions.map(\.number)),
                    .integers(partitions.map(\.generation)),
                ])
        case .flush(let call): return PostgresQuery(Self.flushing, call.values)
        case .hear(let rows):
            return PostgresQuery(
                Self.hearing,
                rows.map(\.client).columns + [
                    .booleans(rows.map(\.isOpen)), .integers(rows.map(\.upTo)),
                ])
        case .loadRegistrations(let partition, let name):
            return PostgresQuery(Self.registrations, Self.start(of: partition, after: name))
        case .loadStates(let partition, let name):
            return PostgresQuery(Self.states, Self.start(of: partition, after: name))
        case .lookUp(let clients): return PostgresQuery(Self.evidence, clients.columns)
        case .forgetHeard(let numbers):
            return PostgresQuery(Self.forgetting, [.smallIntegers(numbers)])
        }
    }

    /// The parameters of a portion. No app has an empty name, so that one lies before all.
    private static func start(of partition: Partition, after name: ClientName?) -> [PostgresValue] {
        [
            .integer(Int64(partition.number)), .text(name?.app ?? ""), .text(name?.client ?? ""),
        ]
    }

    /// Reads the answer from the rows of the query.
    ///
    /// - Throws: `PostgresError.unexpectedAnswer` when a row or column is missing.
    package func answer(_ rows: [PostgresRow]) throws(PostgresError) -> PartitionAnswer {
        switch self {
        case .attach, .release, .hear, .forgetHeard: return .done
        case .take:
            var taken: [Partition] = []
            for row in rows {
                taken.append(
                    Partition(
                        number: Int32(truncatingIfNeeded: try row.integer(0)),
                        generation: try row.integer(1)))
            }
            return .taken(taken)
        case .lookUp(let clients): return try Self.evidence(of: clients, rows)
        default: break
        }
        guard let row = rows.first else { throw .unexpectedAnswer }
        switch self {
        case .identify(let last):
            guard case .identified(let identity) = try WriteRequest.identify(at: last).answer(rows)
            else { throw .unexpectedAnswer }
            return .identified(identity)
        case .readDurability: return .durability(try Durability(row, column: 0))
        case .renew: return .renewed(try LeaseRenewal(row))
        case .flush:
            return .flushed(lost: try row.integers(0).map { Int32(truncatingIfNeeded: $0) })
        case .loadRegistrations(let partition, _):
            var found: [PartitionRegistration] = []
            for row in rows where !row.isNull(1) {
                found.append(
                    PartitionRegistration(
                        name: ClientName(app: try row.text(1), client: try row.text(2)),
                        ownTokens: Set(try row.uuids(4)), payload: try row.bytes(3)))
            }
            return .loaded(
                PartitionPortion(
                    partition: partition, asOf: try row.integer(0), rows: .registrations(found)),
                isLast: found.count < Self.portionMax)
        case .loadStates(let partition, _):
            var found: [PushStateRow] = []
            for row in rows where !row.isNull(2) {
                found.append(
                    PushStateRow(
                        name: ClientName(app: try row.text(2), client: try row.text(3)),
                        told: try row.integer(4), isOwed: try row.boolean(5),
                        payload: try row.bytes(6)))
            }
            return .loaded(
                PartitionPortion(
                    partition: partition, asOf: try row.integer(0),
                    rows: .states(found, clear: try row.integer(1))),
                isLast: found.count < Self.portionMax)
        case .attach, .release, .hear, .forgetHeard, .take, .lookUp:
            throw .unexpectedAnswer
        }
    }

    private static func evidence(
        of clients: [PartitionedClient], _ rows: [PostgresRow]
    ) throws(PostgresError) -> PartitionAnswer {
        var evidence: [PartitionedClient: DeliveryEvidence] = [:]
        for row in rows {
            let place = Int(try row.integer(0)) - 1
            guard clients.indices.contains(place) else { throw .unexpectedAnswer }
            evidence[clients[place]] = DeliveryEvidence(
                upTo: try row.integer(1), isOpen: try row.boolean(2))
        }
        return .lookedUp(evidence)
    }
}

extension [PartitionedClient] {
    /// Partitions, apps and clients as three parameters.
    fileprivate var columns: [PostgresValue] {
        [
            .smallIntegers(map(\.part)), .texts(map(\.name.app)), .texts(map(\.name.client)),
        ]
    }
}

extension FlushCall {
    /// The parameters of `tg.flush`. A sequence that is clear never falls, so 0 leaves it.
    fileprivate var values: [PostgresValue] {
        [
            .smallIntegers(owned.map(\.partition.number)),
            .integers(owned.map(\.partition.generation)), .integers(owned.map { $0.clear ?? 0 }),
        ] + rows.map { PartitionedClient(part: $0.part, name: $0.state.name) }.columns + [
            .integers(rows.map(\.state.told)), .booleans(rows.map(\.state.isOwed)),
            .byteArrays(rows.map(\.state.payload)),
        ]
    }
}

extension LeaseRenewal {
    /// Reads the row of `tg.renew`.
    fileprivate init(_ row: PostgresRow) throws(PostgresError) {
        let nodes = try row.integers(3)
        let parts = try row.integers(1)
        let generations = try row.integers(2)
        let beats = try row.integers(4)
        guard nodes.count == beats.count, parts.count == generations.count else {
            throw .unexpectedAnswer
        }
        self.init(
            node: Int32(truncatingIfNeeded: try row.integer(0)),
            owned: zip(parts, generations).map {
                Partition(number: Int32(truncatingIfNeeded: $0), generation: $1)
            },
            beats: Dictionary(
                zip(nodes.map { Int32(truncatingIfNeeded: $0) }, beats)
            ) { $1 },
            serving: try row.integers(5).map { Int32(truncatingIfNeeded: $0) })
    }
}
