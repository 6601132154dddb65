import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayPostgres

@Suite(.enabled(if: PostgresServer.isInstalled)) struct RegistrationWriteTests {
    private static let shared = Result { try ClusterFixture() }

    private static func content(
        _ number: UInt8, attributes: [UInt128] = [], tokens: [UInt128] = [], seenDay: Int32 = 5
    ) -> RegistrationContent {
        RegistrationContent(
            digest: Int64(number), attributes: attributes, tokens: tokens, seenDay: seenDay,
            payload: [number])
    }

    private static func put(
        _ key: RegistrationKey, from base: Int64, _ content: RegistrationContent?
    ) -> LogWrite.Content {
        .registration(RegistrationWrite(key: key, base: base, content: content))
    }

    private static func revision(_ outcome: WriteOutcome) throws -> Int64 {
        guard case .written(_, let revision) = outcome else { throw TestFailure("\(outcome)") }
        return revision
    }

    private static func sequence(_ outcome: WriteOutcome) throws -> Int64 {
        guard case .written(let sequence, _) = outcome else { throw TestFailure("\(outcome)") }
        return sequence
    }

    @Test func aRowFollowsEveryWriteAndARevisionIsNeverUsedTwice() throws {
        let node = try WriterFixture(try Self.shared.get().address(user: "node1"))
        let key = RegistrationKey(part: 9, app: "rows", client: "one")
        func write(_ base: Int64, _ content: RegistrationContent?) throws -> WriteOutcome {
            try node.write(Self.put(key, from: base, content), app: "rows")
        }
        #expect(try node.row(key) == nil)
        #expect(try write(0, nil) == .conflict)
        let first = Self.content(1, attributes: [1, .max], tokens: [7], seenDay: 20)
        let one = try Self.revision(try write(0, first))
        var row = try #require(try node.row(key))
        #expect(row.revision == one)
        #expect(row.content == first)
        #expect(row.ownTokens == [7])
        #expect(row.updatedAt > 1_700_000_000_000)
        #expect(try write(0, Self.content(2)) == .conflict)
        #expect(try write(one + 1, Self.content(2)) == .conflict)
        let two = try Self.revision(try write(one, Self.content(2, seenDay: 0)))
        row = try #require(try node.row(key))
        #expect(row.content.payload == [2])
        // Seen on the day of the write before, and its address is given up.
        #expect(row.content.seenDay == 20)
        #expect(row.content.tokens == [])
        let three = try Self.revision(try write(two, nil))
        #expect(try node.row(key) == nil)
        #expect(try write(two, Self.content(3)) == .conflict)
        let four = try Self.revision(try write(0, Self.content(4)))
        #expect(one < two && two < three && three < four)
        let tokens = try Self.shared.get().administration().rows(
            "SELECT 1 FROM tg.push_address WHERE app = 'rows'")
        #expect(tokens.isEmpty)
    }

    @Test func anAddressBelongsToTheLastClientAndTheOneBeforeHearsIt() throws {
        let cluster = try ClusterFixture()
        let node = try WriterFixture(try cluster.address(user: "node1"))
        let keys = ["x", "y"].map { RegistrationKey(part: 1, app: "app", client: $0) }
        func put(_ index: Int, _ base: Int64, _ tokens: [UInt128]) throws -> Int64 {
            try Self.revision(
                try node.write(Self.put(keys[index], from: base, Self.content(1, tokens: tokens))))
        }
        func own() throws -> [Set<UInt128>] {
            try keys.map { try node.row($0)?.ownTokens ?? [] }
        }
        let x = try put(0, 0, [1, 2])
        let y = try put(1, 0, [2, 3, 3])
        #expect(try own() == [[1], [2, 3]])
        // Gives up what it has lost, which stays with the other.
        let second = try put(0, x, [1])
        #expect(try own() == [[1], [2, 3]])
        _ = try put(1, y, [3])
        _ = try put(0, second, [1, 2])
        #expect(try own() == [[1, 2], [3]])
        let log = try cluster.administration().rows("SELECT body FROM tg.log ORDER BY last")
        let records = try log.flatMap { try LogRecord.records(in: try $0.bytes(0)) }
        let lost = LogRecord(app: "app", .addressesLost(part: 1, client: "x"))
        #expect(records.count { $0 == lost } == 1)
        #expect(records.count == 6)
    }

    @Test func aCatalogIsWrittenInPlaceOfTheOneItWasDecidedFrom() throws {
        let cluster = try Self.shared.get()
        let nodes = try [1, 2].map { try WriterFixture(try cluster.address(user: "node\($0)")) }
        func put(_ node: Int, _ payload: UInt8, _ place: Int64) throws -> WriteOutcome {
            try nodes[node].write(.catalog(payload: [payload], replacing: place), app: "cat")
        }
        let first = try Self.sequence(try put(0, 1, 0))
        #expect(try put(1, 2, 0) == .conflict)
        let second = try Self.sequence(try put(1, 2, first))
        // A node that still has version 1 puts it again: it replaces what it does not know.
        #expect(try put(0, 1, first) == .conflict)
        let third = try Self.sequence(try put(0, 1, second))
        #expect(
            try nodes[1].write(.removal(replacing: second), app: "cat") == .conflict)
        let removal = try Self.sequence(
            try nodes[1].write(.removal(replacing: third), app: "cat"))
        #expect(
            try nodes[1].write(.removal(replacing: removal), app: "cat", removal: removal)
                == .conflict)
        #expect(try put(0, 1, third) == .conflict)
        #expect(
            try nodes[0].write(.changes([.init(1)]), app: "cat") == .conflict)
        #expect(
            try nodes[0].write(.changes([.init(1)]), app: "cat", removal: removal)
                == .accepted([.appended(removal + 1)]))
        _ = try Self.sequence(
            try nodes[0].write(
                .catalog(payload: [1], replacing: removal), app: "cat", removal: removal))
        let rows = try cluster.administration().rows(
            "SELECT payload FROM tg.catalog WHERE app = 'cat' ORDER BY seq")
        #expect(try rows.map { $0.isNull(0) ? [] : try $0.bytes(0) } == [[1], [2], [1], [], [1]])
    }

    @Test func rowsFromBeforeARemovalAreVoidAndDeletedInPortions() throws {
        let cluster = try ClusterFixture()
        let node = try WriterFixture(try cluster.address(user: "node1"))
        let catalog = try Self.sequence(
            try node.write(.catalog(payload: [1], replacing: 0)))
        let keys = (0..<150).map {
            RegistrationKey(part: Int16($0 % 3 * 2_000), app: "app", client: "c\($0)")
        }
        let other = RegistrationKey(part: 0, app: "other", client: "c")
        for (index, key) in keys.enumerated() {
            let content = Self.content(1, attributes: [5], tokens: [UInt128(index)])
            _ = try Self.revision(try node.write(Self.put(key, from: 0, content)))
        }
        _ = try node.write(Self.put(other, from: 0, Self.content(1)), app: "other")
        let listed = try node.read(.clients(attribute: 5, app: "app", after: "c1", limit: 3))
        #expect(
            listed
                == .clients(
                    ["c10", "c100", "c101"].map { client in
                        keys.first { $0.client == client } ?? other
                    }))
        let removal = try Self.sequence(try node.write(.removal(replacing: catalog)))
        #expect(try node.row(keys[1]) == nil)
        let again = Self.put(keys[1], from: 0, Self.content(2))
        #expect(try node.write(again) == .conflict)
        try blockUntil("no row is left") {
            try cluster.administration().rows("SELECT 1 FROM tg.removal").isEmpty
        }
        let left = "SELECT client FROM tg.registration ORDER BY client"
        #expect(try cluster.administration().rows(left).map { try $0.text(0) } == ["c"])
        #expect(try cluster.administration().rows("SELECT 1 FROM tg.push_address").isEmpty)
        // One that is not deleted yet is void, and is replaced.
        try cluster.execute(
            """
            INSERT INTO tg.registration VALUES (2000, 'app', 'c1', 5, \(removal - 1), 1, '{}', '{}', 0,
              30, 'old')
            """)
        #expect(try node.row(keys[1]) == nil)
        #expect(
            try node.write(Self.put(keys[1], from: 5, nil), removal: removal) == .conflict)
        _ = try Self.revision(try node.write(again, removal: removal))
        #expect(try node.row(keys[1])?.content.payload == [2])
    }

    @Test func namesThatTheServerCannotStoreAreRefused() throws {
        let node = try WriterFixture(try Self.shared.get().address(user: "node1"))
        for client in ["a\0b", String(repeating: "x", count: 513)] {
            let key = RegistrationKey(part: 0, app: "app", client: client)
            #expect(
                try node.write(Self.put(key, from: 0, Self.content(1)))
                    == .refused(.invalidName))
            #expect(try node.read(.rows([key], asOf: 0)) == .refused(.invalidName))
            #expect(
                try node.read(.clients(attribute: 1, app: "app", after: client, limit: 1))
                    == .refused(.invalidName))
        }
        #expect(
            try node.read(
                .rows(
                    (0...100).map { RegistrationKey(part: 0, app: "a", client: "\($0)") }, asOf: 0)
            ) == .refused(.tooLarge))
        #expect(try node.write(.reload(scope: []), app: "a\0") == .refused(.invalidName))
    }

    @Test func aRowIsNotReadAsOfAHeadThatTheServerDoesNotHave() throws {
        let node = try WriterFixture(try Self.shared.get().address(user: "node1"))
        #expect(try node.read(.rows([], asOf: 1 << 40)) == .refused(.unavailable))
    }

    /// The server compares again what a probe has found, because another node may have written in
    /// between.
    @Test func theServerRefusesWhatWasDecidedFromSomethingElse() throws {
        let cluster = try ClusterFixture()
        let session = SessionDriver(
            try cluster.address(user: "node1"), preparing: WriteRequest.statements)
        try session.open()
        _ = try session.answers(WriteRequest.fence.query)
        let keys = (0..<3).map { RegistrationKey(part: 2, app: "app", client: "c\($0)") }
        func append(
            _ registrations: [AppendCall.Registration] = [], _ claims: [AppendCall.Claim] = [],
            catalogs: [AppendCall.Catalog] = [], probed: Int64 = 100
        ) throws -> PostgresError? {
            var call = AppendCall(generation: 1, batch: 1, link: 1, count: 1, probed: probed)
            (call.registrations, call.claims, call.catalogs) = (registrations, claims, catalogs)
            (call.apps, call.records) = (["app"], LogRecord(number: 1).encoded)
            let answer = try session.answers(WriteRequest.append(call).query)[0]
            do { _ = try answer.get() } catch { return error }
            return nil
        }
        func row(
            _ client: Int, from base: Int64, to revision: Int64, removed: Bool = false,
            _ tokens: [UInt128] = []
        ) -> AppendCall.Registration {
            AppendCall.Registration(
                key: keys[client], base: base, revision: revision, removal: 0,
                content: removed ? nil : Self.content(UInt8(revision), tokens: tokens))
        }
        func claim(_ token: UInt128, from owner: Int?) -> AppendCall.Claim {
            AppendCall.Claim(token: token, place: 1, owner: owner.map { keys[$0] })
        }
        #expect(try append([row(0, from: 0, to: 1, [7])], [claim(7, from: nil)]) == nil)
        let state = """
            SELECT (SELECT count(*) FROM tg.log), (SELECT sum(revision)::bigint FROM tg.registration),
              (SELECT count(*) FROM tg.push_address WHERE client = 'c0')
            """
        let before = try cluster.administration().rows(state)
        // Rows: there is one, there is none, another revision; each of several writes counts.
        #expect(try append([row(0, from: 0, to: 2)]) == .raced)
        #expect(try append([row(1, from: 1, to: 2)]) == .raced)
        #expect(try append([row(0, from: 2, to: 3)]) == .raced)
        #expect(try append([row(0, from: 2, to: 3, removed: true)]) == .raced)
        #expect(try append([row(1, from: 1, to: 2, removed: true)]) == .raced)
        #expect(try append([row(2, from: 0, to: 2), row(0, from: 2, to: 3)]) == .raced)
        // Addresses: there is an owner, there is none, another one.
        #expect(try append([row(1, from: 0, to: 2, [7])], [claim(7, from: nil)]) == .raced)
        #expect(try append([row(1, from: 0, to: 2, [8])], [claim(8, from: 0)]) == .raced)
        #expect(try append([row(1, from: 0, to: 2, [7])], [claim(7, from: 2)]) == .raced)
        #expect(try cluster.administration().rows(state) == before)
        // Catalogs: one since the probe.
        let catalog = AppendCall.Catalog(app: "app", place: 1, payload: [1])
        #expect(try append(catalogs: [catalog], probed: 1) == nil)
        #expect(try append(catalogs: [catalog], probed: 1) == .raced)
        #expect(try append(probed: 1) == .raced)
        #expect(try append([row(0, from: 1, to: 4)], probed: 1) == .raced)
        #expect(try append([row(0, from: 1, to: 4)], probed: 2) == nil)
        // Too many, and a node that writes rows without their records.
        let many = (0..<101).map { number in
            var row = row(1, from: 0, to: 9)
            row.key = RegistrationKey(part: 0, app: "app", client: "m\(number)")
            return row
        }
        guard case .other("22023", _) = try append(many) else { throw TestFailure("accepted") }
        #expect(try append(Array(many.dropLast())) == nil)
        let node = try cluster.connection(as: "node1")
        let error = #expect(throws: PostgresError.self) {
            try node.execute("SELECT tg.write_registrations(1, NULL, NULL)")
        }
        guard case .schema = error else { throw TestFailure("a row apart from its record") }
    }

    @Test func deletingIsBoundedAndLeftToTheNodeThatIsAtIt() throws {
        let cluster = try ClusterFixture()
        try cluster.execute(
            """
            INSERT INTO tg.catalog VALUES ('app', 9, NULL);
            INSERT INTO tg.removal VALUES ('app', 9, 0);
            INSERT INTO tg.registration SELECT 4095, 'app', 'c' || n, n, n, 1, '{}',
              array[lpad(n::text, 32, '0')::uuid], 0, 0, '' FROM generate_series(1, 10) n;
            INSERT INTO tg.push_address SELECT lpad(n::text, 32, '0')::uuid, 4095, 'app',
              'c' || CASE n WHEN 3 THEN 10 ELSE n END FROM generate_series(1, 10) n;
            INSERT INTO tg.push_state SELECT 4095, 'app', 'c' || n, 1, false, ''
              FROM generate_series(1, 10) n;
            """)
        let (first, second) = (
            try cluster.connection(as: "node1"), try cluster.connection(as: "node2")
        )
        func delete(_ node: PostgresAdministration) throws -> Bool {
            try node.rows("SELECT tg.delete_removed(4)").first?.boolean(0) ?? true
        }
        func counts() throws -> [Int64] {
            try ["registration", "push_address", "push_state"].map {
                try cluster.administration().rows("SELECT count(*) FROM tg.\($0)").first?.integer(0)
                    ?? -1
            }
        }
        try first.execute("BEGIN")
        #expect(try delete(first))
        #expect(try !delete(second))
        try first.execute("COMMIT")
        // 64 parts at a time; all rows are in the last one.
        for _ in 0..<62 { #expect(try delete(second)) }
        #expect(try counts() == [10, 10, 10])
        #expect(try delete(second))
        #expect(try counts()[0] == 6)
        #expect(try delete(second))
        #expect(try !delete(second))
        // Two were written since, at the removal's place and behind it; one of them has the address
        // of another client, too.
        #expect(try counts() == [2, 3, 2])
    }
}
