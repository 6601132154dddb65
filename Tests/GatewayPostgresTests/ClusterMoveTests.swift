import ClusterTestSupport
import Foundation
import GatewayPostgres
import GatewayTestSupport
import Testing

/// A store of one node, as it is moved: three batches around the border of a slice.
private struct MovedStore {
    static let key = UInt128(0xFEED)
    static let floor: Int64 = 18
    static let head: Int64 = 23

    let registrations = (1...3).map { number in
        MovedRegistration(
            key: RegistrationKey(part: Int16(number), app: "app", client: "client\(number)"),
            revision: 1,
            content: RegistrationContent(
                digest: Int64(number), attributes: Array(repeating: 5, count: number),
                tokens: [UInt128(number)], seenDay: 20_000, payload: [UInt8(number)]),
            updatedAt: 1_000)
    }
    let epochs = [
        MovedEpoch(ordinal: 1, nonce: .max, openedAt: 0, isVoid: true),
        MovedEpoch(ordinal: 2, nonce: 6, openedAt: 20, isVoid: false),
    ]
    let catalogs = [
        MovedCatalog(app: "app", sequence: 12, payload: [7]),
        MovedCatalog(app: "app", sequence: 19, payload: [8]),
        MovedCatalog(app: "gone", sequence: 22, payload: nil),
    ]
    let batches = [
        MovedBatch(
            after: 18, at: 5,
            records: [LogRecord(app: "app", .catalog(payload: [8])), LogRecord(number: 20)],
            events: [.init(key: key, digest: 1, place: 2)]),
        MovedBatch(
            after: 20, at: 6,
            records: [LogRecord(number: 21), LogRecord(app: "gone", .removal)]),
        MovedBatch(after: 22, at: 7, records: [LogRecord(number: 23)]),
    ]
    var counts: MovedCounts {
        MovedCounts(registrations: 3, catalogs: 3, epochs: 2, secrets: 1)
    }

    /// The portions in order, without the end.
    var portions: [(ClusterMove) throws -> Void] {
        let (first, rest) = (registrations[0...0], registrations[1...])
        return [
            { try $0.write(catalogs) }, { try $0.write(Array(first)) },
            { try $0.write(Array(rest)) }, { try $0.write(epochs) },
            {
                try $0.write(
                    SecretRow(
                        kind: SecretKind.signing.rawValue, name: "1", notBefore: 100,
                        notAfter: 200, wrapped: [9]))
            },
        ]
            + batches.map { batch in
                { move in
                    let last = try move.append([batch])
                    #expect(last >= batch.after + Int64(batch.records.count))
                }
            }
    }
}

@Suite(.enabled(if: PostgresServer.isInstalled)) struct ClusterMoveTests {
    private let store = MovedStore()

    /// Begins a move that was not finished before.
    private func begin(_ fixture: ClusterFixture, source: Int64 = 7) throws -> ClusterMove {
        let move = ClusterMove(try fixture.administration())
        #expect(
            try move.begin(
                source: source, floor: MovedStore.floor, head: MovedStore.head, highestOrdinal: 2)
                != nil)
        return move
    }

    private func contents(_ fixture: ClusterFixture) throws -> [String] {
        try fixture.administration().rows(
            """
            SELECT concat_ws(' ', last, first, node, batch, at, body) FROM tg.log
            UNION ALL SELECT 'e' || t::text FROM tg.event t UNION ALL SELECT 'c' || t::text FROM tg.catalog t
            UNION ALL SELECT 'r' || t::text FROM tg.registration t
            UNION ALL SELECT 'p' || t::text FROM tg.push_address t
            UNION ALL SELECT 'h' || concat_ws(' ', nonce, opened_at, is_void) FROM tg.epoch
            UNION ALL SELECT concat_ws(' ', kind, name, not_before, not_after, wrapped) FROM tg.secret
            ORDER BY 1
            """
        ).map { try $0.text(0) }
    }

    @Test func aMoveThatIsBrokenOffAtAnyPortionEndsAsOneThatIsNot() throws {
        let whole = try ClusterFixture(slice: 10)
        let move = try begin(whole)
        for portion in store.portions { try portion(move) }
        #expect(try move.finish(store.counts))
        let expected = try contents(whole)
        for end in 1...store.portions.count {
            let fixture = try ClusterFixture(slice: 10)
            let broken = try begin(fixture)
            for portion in store.portions.prefix(end) { try portion(broken) }
            if end < store.portions.count {
                #expect(try !broken.finish(store.counts), "after \(end)")
            }
            let again = try begin(fixture)
            for portion in store.portions { try portion(again) }
            #expect(try again.finish(store.counts), "after \(end)")
            #expect(try contents(fixture) == expected, "after \(end)")
        }
    }

    @Test func noNodeWritesBeforeTheEndAndTheNextBatchFollowsTheOldHead() throws {
        let fixture = try ClusterFixture(slice: 10)
        let move = try begin(fixture)
        for portion in store.portions { try portion(move) }
        let node = try fixture.connection(as: "node1")
        try node.execute("SELECT tg.fence(); SELECT tg.attach(1, true)")
        #expect(throws: PostgresError.logClosed) {
            try node.execute("SELECT tg.take('{1}', '{}', '{}')")
        }
        #expect(throws: PostgresError.logClosed) {
            try node.execute(
                """
                SELECT tg.append(1, 7, '\\x000102030405060708090a0b0c0d0e0f', 1, 23, '{}', '{}', '{}', 'r')
                """)
        }
        #expect(throws: PostgresError.self) { try begin(fixture, source: 8) }
        #expect(try move.finish(store.counts))
        // It is over: nothing of it can be done again, and no log is written over.
        #expect(throws: PostgresError.self) { try move.write(store.catalogs) }
        #expect(throws: PostgresError.self) { try move.finish(store.counts) }
        #expect(throws: PostgresError.self) { try begin(fixture, source: 8) }
        #expect(
            try move.begin(
                source: 7, floor: MovedStore.floor, head: MovedStore.head, highestOrdinal: 2)
                == nil)

        let writer = try WriterFixture(try fixture.address(user: "node1"))
        try writer.waitUntilReady()
        let expected = store.registrations[1]
        let row = try #require(try writer.row(expected.key))
        #expect(row.revision == 1 && row.content.digest == expected.content.digest)
        #expect(row.content.payload == expected.content.payload)
        #expect(row.content.attributes == expected.content.attributes)
        #expect(row.ownTokens == [2] && row.updatedAt == 1_000)
        #expect(
            try writer.append(LogWrite.Change(20, key: MovedStore.key))
                == .accepted([.duplicate(20)]))
        #expect(
            try writer.append(LogWrite.Change(24, key: 1)) == .accepted([.appended(24)]))
        let missing = try node.rows("SELECT tg.missing_slices()").first?.integer(0)
        #expect(missing == 0)
    }

    @Test func batchesTogetherAreAsBatchesOneByOne() throws {
        let fixtures = try (0..<2).map { _ in try ClusterFixture(slice: 2) }
        let moves = try fixtures.map { try begin($0) }
        for batch in store.batches { _ = try moves[0].append([batch]) }
        #expect(try moves[1].append(store.batches) == MovedStore.head)
        // A portion that is there writes nothing, and neither does one that goes too far.
        #expect(try moves[1].append(Array(store.batches[1...])) == MovedStore.head)
        let beyond = MovedBatch(after: MovedStore.head, at: 8, records: [LogRecord(number: 24)])
        #expect(try moves[1].append([beyond]) == MovedStore.head)
        #expect(try contents(fixtures[0]) == contents(fixtures[1]))
    }

    @Test func noNodeAddsOrRemovesASecretDuringAMove() throws {
        let fixture = try ClusterFixture(slice: 10)
        let move = try begin(fixture)
        for portion in store.portions { try portion(move) }
        let node = try fixture.connection(as: "node1")
        let add = "SELECT tg.add_secret('hash-keys', 'a', NULL, 0, 1, 0, 'k')"
        #expect(throws: PostgresError.logClosed) { try node.execute(add) }
        // One that ended is counted, too.
        #expect(try node.rows("SELECT tg.drop_secrets()").first?.integer(0) == 0)
        #expect(try move.finish(store.counts))
        #expect(try node.rows("SELECT tg.drop_secrets()").first?.integer(0) == 1)
        try node.execute(add)
    }

    @Test func `the ordinal of the log is above those of the store and above the time`() throws {
        func ordinal(after highest: UInt32) throws -> Int64 {
            let fixture = try ClusterFixture()
            let move = ClusterMove(try fixture.administration())
            #expect(try move.begin(source: 1, floor: 0, head: 0, highestOrdinal: highest) == 0)
            let counts = MovedCounts(registrations: 0, catalogs: 0, epochs: 0, secrets: 0)
            #expect(try move.finish(counts))
            let row = try fixture.administration().rows(
                """
                SELECT ('x' || left(log_id::text, 8))::bit(32)::bigint, ordinal, opened_at
                FROM tg.log_identity, tg.epoch
                """
            ).first
            let found = try #require(row)
            #expect(try found.integer(0) == found.integer(1) && found.integer(2) == 0)
            return try found.integer(0)
        }
        #expect(try ordinal(after: 3) > Int64(Date().timeIntervalSince1970))
        #expect(try ordinal(after: 0xFFFF_0000) > 0xFFFF_0000)
        #expect(try ordinal(after: .max - 1) == Int64(UInt32.max))
        #expect(throws: PostgresError.self) { try ordinal(after: .max) }
    }

    @Test func onlyAnOperatorMoves() throws {
        let fixture = try ClusterFixture()
        let node = ClusterMove(try fixture.connection(as: "node1"))
        #expect(throws: PostgresError.self) {
            try node.begin(source: 1, floor: 0, head: 0, highestOrdinal: 0)
        }
        #expect(throws: PostgresError.self) { try node.write(store.epochs) }
        #expect(throws: PostgresError.self) { try node.write(store.catalogs) }
        #expect(throws: PostgresError.self) { try node.finish(store.counts) }
    }
}
