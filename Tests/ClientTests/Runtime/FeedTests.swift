import CatalogModel
import GatewayTestSupport
import Glibc
import NIOCore
import NIOHTTP1
import Testing
import TimelineGatewayClient
import WidgetModel

@testable import timelinectl

/// A part of a message.
private protocol BytesPart {
    var part: [UInt8] { get }
}

extension String: BytesPart {
    fileprivate var part: [UInt8] { Array(utf8) }
}

extension BytesPart where Self: FixedWidthInteger {
    fileprivate var part: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}

extension UInt8: BytesPart {}
extension UInt16: BytesPart {}
extension UInt32: BytesPart {}
extension UInt64: BytesPart {}
extension Int32: BytesPart {}
extension Int64: BytesPart {}

/// The bytes of messages as PostgreSQL's manual describes them.
private struct Bytes {
    var bytes: [UInt8] = []

    init(_ parts: any BytesPart...) { bytes = parts.flatMap { $0.part } }

    func then(_ parts: any BytesPart...) -> Self {
        var longer = self
        longer.bytes += parts.flatMap { $0.part }
        return longer
    }

    /// A message of `pgoutput`, as it is streamed.
    static func change(_ type: String) -> Self {
        Bytes("w", UInt64(1), UInt64(2), Int64(3), type)
    }

    /// A row; `nil` is NULL, and `-` a value that is not repeated.
    func row(_ kind: String, _ values: [String?]) -> Self {
        var bytes = then(kind, UInt16(values.count))
        for value in values {
            switch value {
            case nil: bytes = bytes.then("n")
            case "-"?: bytes = bytes.then("u")
            case let text?: bytes = bytes.then("t", UInt32(text.utf8.count), text)
            }
        }
        return bytes
    }

    static func begin(_ commit: UInt64, _ time: Int64 = 0) -> Self {
        change("B").then(commit, time, UInt32(700))
    }

    static func commit(_ end: UInt64) -> Self {
        change("C").then(UInt8(0), end - 1, end, Int64(0))
    }

    /// A table with a key, a text, and a boolean or another type.
    static func relation(_ identity: String, late type: UInt32 = 16) -> Self {
        var bytes = change("R").then(UInt32(9), "public\0trains\0", identity, UInt16(3))
        let columns: [(name: String, type: UInt32)] = [("id", 23), ("delay", 25), ("late", type)]
        for (place, column) in columns.enumerated() {
            let isKey: UInt8 = place == 0 || identity == "f" ? 1 : 0
            bytes = bytes.then(isKey, column.name + "\0", column.type, Int32(-1))
        }
        return bytes
    }

    static func row(_ type: String) -> Self { change(type).then(UInt32(9)) }

    static func truncation(_ relations: UInt32...) -> Self {
        relations.reduce(change("T").then(UInt32(relations.count), UInt8(0))) { $0.then($1) }
    }

    static func keepalive(_ position: UInt64, wantsReply: Bool = false) -> Self {
        Bytes("k", position, Int64(0), UInt8(wantsReply ? 1 : 0))
    }
}

@Suite struct FeedTests {
    private static let mapping = """
        tables:
          - { table: trains, entity: Train, properties: [delay, late=isLate], attributes: [late] }
        """

    private func feed(
        _ mapping: String = Self.mapping, _ database: FeedDatabase = FeedDatabase()
    ) throws -> LogicalFeed {
        LogicalFeed(try FeedMapping(JSONValue(yaml: mapping)), database)
    }

    /// Returns the complaints about messages.
    private func receive(_ messages: [Bytes], _ feed: inout LogicalFeed) throws -> [String] {
        var complaints: [String] = []
        for bytes in messages { complaints += try feed.receive(ReplicationMessage(bytes.bytes)) }
        return complaints
    }

    /// Returns the changes of a feed's events, and leaves none.
    private func takeChanges(_ feed: inout LogicalFeed) throws -> [Change] {
        defer { feed.events = [] }
        return try feed.events.map {
            try Change(JSONValue(parsing: $0.change), at: "", limits: Limits())
        }
    }

    @Test func messagesAreRead() throws {
        func message(_ bytes: Bytes) throws -> ReplicationMessage {
            try ReplicationMessage(bytes.bytes)
        }
        #expect(try message(.begin(5, 6)) == .change(.begin(commit: 5, time: 6)))
        #expect(try message(.commit(8)) == .change(.commit(end: 8)))
        #expect(
            try message(.row("I").row("N", ["1", nil, "-"]))
                == .change(.insert(relation: 9, [.text("1"), .null, .unchanged])))
        #expect(
            try message(.row("U").row("K", ["1"]).row("N", ["2"]))
                == .change(.update(relation: 9, from: .key([.text("1")]), to: [.text("2")])))
        #expect(
            try message(.row("U").row("N", ["é"]))
                == .change(.update(relation: 9, from: nil, to: [.text("é")])))
        #expect(
            try message(.row("D").row("O", [nil]))
                == .change(.delete(relation: 9, .whole([.null]))))
        #expect(
            try message(.truncation(9, 8))
                == .change(.truncate([9, 8])))
        #expect(try message(.change("Y").then("any")) == .change(.other))
        #expect(
            try message(.keepalive(7, wantsReply: true))
                == .keepalive(position: 7, wantsReply: true))
        guard case .change(.relation(let relation)) = try message(.relation("d")) else {
            throw TestFailure("no relation")
        }
        #expect(relation.schema == "public" && relation.table == "trains" && relation.number == 9)
        #expect(relation.columns.map(\.isKey) == [true, false, false])
        #expect(relation.columns.map(\.isBoolean) == [false, false, true])
        #expect(!relation.isIdentityFull)
    }

    @Test func brokenMessagesAreRefused() throws {
        var generator = SplitMix64(seed: 46)
        let messages: [Bytes] = [
            .begin(5), .commit(8), .relation("f"), .row("I").row("N", ["1", nil, "-"]),
            .row("U").row("O", ["1", "2", "t"]).row("N", ["2", "2", "f"]),
            .row("D").row("K", ["1", nil, nil]), .truncation(9),
            .keepalive(7, wantsReply: true),
        ]
        for message in messages {
            for count in 0..<message.bytes.count {
                #expect(throws: (any Error).self) {
                    try ReplicationMessage(Array(message.bytes[..<count]))
                }
            }
            // Whatever is read, nothing traps.
            for _ in 0..<500 {
                var bytes = message.bytes
                for _ in 0..<3 {
                    bytes[Int.random(in: bytes.indices, using: &generator)] =
                        UInt8.random(in: 0...255, using: &generator)
                }
                guard let read = try? ReplicationMessage(bytes) else { continue }
                var feed = try feed()
                _ = try? feed.receive(ReplicationMessage(Bytes.relation("f").bytes))
                _ = try? feed.receive(read)
            }
        }
    }

    @Test func rowsAnnounceWhatChanged() throws {
        func changes(_ identity: String, _ rows: [Bytes]) throws -> [Change] {
            var feed = try feed()
            for bytes in [Bytes.relation(identity), Bytes.begin(1)] + rows + [Bytes.commit(2)] {
                _ = try feed.receive(ReplicationMessage(bytes.bytes))
            }
            return try takeChanges(&feed)
        }
        func update(
            _ properties: [String], late: [String] = ["true"], id: String? = "1"
        ) -> Change {
            Change(
                entity: "Train", id: id, properties: properties,
                attributes: late.isEmpty ? [:] : ["late": late])
        }
        func updated(_ old: [String?]?, _ new: [String?], _ kind: String = "O") -> [Bytes] {
            let bytes = Bytes.row("U")
            return [(old.map { bytes.row(kind, $0) } ?? bytes).row("N", new)]
        }
        let insert = Change(
            entity: "Train", id: "1", operation: .insert, attributes: ["late": ["true"]])
        #expect(try changes("f", [.row("I").row("N", ["1", "5", "t"])]) == [insert])
        #expect(try changes("f", [.row("I").row("N", [nil, "5", "t"])]).isEmpty)
        #expect(
            try changes("f", updated(["1", "5", "t"], ["1", "6", "t"])) == [update(["delay"])])
        #expect(try changes("f", updated(["1", "5", "t"], ["1", "5", "t"])).isEmpty)
        #expect(try changes("f", updated(["1", "5", "t"], ["1", "-", "t"])).isEmpty)
        #expect(
            try changes("f", updated(["1", "5", "t"], ["1", "5", "f"]))
                == [update([], late: ["true", "false"])])
        #expect(
            try changes("f", updated(["1", "5", nil], ["1", "5", "f"])) == [update([], late: [])])
        let gone = Change(
            entity: "Train", id: "1", operation: .delete, attributes: ["late": ["true"]])
        #expect(
            try changes("f", updated(["1", "5", "t"], ["2", "5", "t"]))
                == [gone]
                + [
                    Change(
                        entity: "Train", id: "2", operation: .insert,
                        attributes: ["late": ["true"]])
                ])
        #expect(try changes("f", [.row("D").row("O", ["1", "5", "t"])]) == [gone])
        #expect(
            try changes("f", [.truncation(9)])
                == [Change(entity: "Train", operation: .delete)])
        // Without the row before, every value may have changed, but the key has not.
        #expect(try changes("d", updated(nil, ["1", "5", "t"])) == [update([], late: [])])
        #expect(
            try changes("d", updated(["1", nil, nil], ["2", "5", "t"], "K")).map(\.id)
                == ["1", "2"])
        #expect(
            try changes("d", [.row("D").row("K", ["1", nil, nil])])
                == [Change(entity: "Train", id: "1", operation: .delete)])
    }

    @Test func whatIsMissingCountsAsChanged() throws {
        var feed = try feed(
            "tables: [{ table: trains, entity: Train, id: number, properties: [track] }]")
        let complaints = try feed.receive(ReplicationMessage(Bytes.relation("d").bytes))
        #expect(complaints.count == 3 && complaints[0].contains("`number`"), "\(complaints)")
        for bytes in [Bytes.begin(1), Bytes.row("U").row("N", ["1", "5", "t"])] {
            _ = try feed.receive(ReplicationMessage(bytes.bytes))
        }
        #expect(
            try takeChanges(&feed) == [Change(entity: "Train", properties: ["track"])])
    }

    @Test func aPartitionMayLogLessThanItsTable() throws {
        let update = Bytes.row("U").row("N", ["1", "5", "t"])
        let gone = Bytes.row("D").row("O", ["1", nil, nil])
        var feed = try feed()
        let complaints = try receive([.relation("f"), .begin(1), update, update], &feed)
        #expect(complaints.count == 1 && complaints[0].contains("a partition"), "\(complaints)")
        #expect(
            try takeChanges(&feed) == Array(repeating: Change(entity: "Train", id: "1"), count: 2))
        // One that is known when the feed connects. What is not in its key may be any value.
        var database = FeedDatabase()
        database.partial = [#""public"."trains""#]
        feed = try self.feed(
            "tables: [{ table: trains, entity: Line, id: delay, part: true }]", database)
        let known = try receive([.relation("f"), .begin(1), gone], &feed)
        #expect(known.count == 1 && known[0].contains("a partition"), "\(known)")
        #expect(try takeChanges(&feed) == [Change(entity: "Line")])
    }

    @Test func whatIsNotMappedOrNotPublishedIsNamed() throws {
        let mapping = "tables: [{ table: trams, entity: Tram }]"
        var feed = try feed(mapping)
        let insert = Bytes.row("I").row("N", ["1", "5", "t"])
        // The server describes partitions, too, whose changes are those of their table.
        let none = try receive([.relation("f"), .begin(1)], &feed)
        #expect(none.isEmpty, "\(none)")
        for message in [insert, .truncation(9)] {
            let complaints = try receive([message], &feed)
            #expect(complaints.count == 1, "\(complaints)")
            #expect(complaints.first?.hasPrefix(#""public"."trains" is published"#) == true)
        }
        var database = FeedDatabase()
        let complaints = try database.complaints(of: FeedMapping(JSONValue(yaml: mapping)))
        #expect(complaints.count == 1 && complaints[0].contains("not published"), "\(complaints)")
        database.published = [#""public"."trams""#]
        #expect(try database.complaints(of: FeedMapping(JSONValue(yaml: mapping))).isEmpty)
    }

    @Test(
        arguments: [
            (16, "t", "true"), (23, "5", "5"), (1042, "a ", "a "), (1700, "1.50", "1.5"),
            (701, "1e+20", "1e+20"), (1700, "NaN", "NaN"), (90_000, "t", "true"),
            (90_001, "t", nil),
            (1009, "{a,b}", nil), (1184, "2026-01-01 00:00:00+00", nil), (3802, "\"a\"", nil),
        ] as [(UInt32, String, String?)])
    func attributesHaveTheTextsOfAnOutbox(type: UInt32, text: String, expected: String?) throws {
        var database = FeedDatabase()
        database.types = [90_000: 16]
        var feed = try feed(Self.mapping, database)
        let insert = Bytes.row("I").row("N", ["1", "5", text])
        let complaints = try receive([.relation("f", late: type), .begin(1), insert], &feed)
        #expect(complaints.count == (expected == nil ? 1 : 0), "\(complaints)")
        let attributes = try takeChanges(&feed).map(\.attributes)
        #expect(attributes == [expected.map { ["late": [$0]] } ?? [:]])
    }

    @Test func anIdHasNoPadding() throws {
        var feed = try feed("tables: [{ table: trains, entity: Train, id: late }]")
        let insert = Bytes.row("I").row("N", ["1", "5", "a b  "])
        _ = try receive([.relation("f", late: 1042), .begin(1), insert], &feed)
        #expect(try takeChanges(&feed).map(\.id) == ["a b"])
    }

    // MARK: Posting

    /// A gateway that never answers.
    private struct SilentConnection: GatewayConnection {
        func send(_: GatewayRequest) async throws(ConnectionError) -> GatewayResponse {
            try? await Task.sleep(for: .seconds(600))
            throw ConnectionError(.cancelled, "cancelled")
        }

        func stream(_: GatewayRequest) async throws(ConnectionError) -> GatewayStream {
            throw ConnectionError(.cancelled, "no streams")
        }
    }

    @Test(.timeLimit(.minutes(2))) func aPostEndsWhenTheEndIsAskedFor() async {
        let service = GatewayService(connection: SilentConnection(), app: "com.railway")
        await #expect(throws: GatewayFailure.self) { try await service.post([]) { true } }
    }

    @Test(.timeLimit(.minutes(2))) func silentConnectionsAreClosed() async throws {
        let server = LocalServer(
            connectionTimeMax: .seconds(600), bodyBytesMax: 100,
            requestTimeMax: .milliseconds(200),
            refusal: { request in
                request.head.method == .POST ? nil : LocalServer.Answer(.methodNotAllowed)
            },
            answer: { request in
                LocalServer.Answer(.ok, body: String(decoding: request.body, as: UTF8.self))
            })
        let (ports, announced) = AsyncStream.makeStream(of: Int.self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await server.run(host: "127.0.0.1", port: 0) { announced.yield($0) }
            }
            let port = try #require(await ports.first { _ in true })
            // As many as are served at once.
            let silent = (0..<16).map { _ in socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) }
            defer { for descriptor in silent { close(descriptor) } }
            for descriptor in silent {
                let address = sockaddr_in(loopback: 1, port: UInt16(port))
                #expect(address.withSockaddr { connect(descriptor, $0, $1) } == 0)
            }
            let http = TestHTTP(url: "http://127.0.0.1:\(port)", ca: "/dev/null")
            #expect(try await http.send("POST", "/", body: "text").text == "text")
            #expect(try await http.send("PUT", "/", body: "text").status == 405)
            group.cancelAll()
        }
    }

    // MARK: Rows

    @Test func aRowMayBeAPartOrEveryColumnCounts() throws {
        let part = TableMapping(
            schema: "public", table: "stops", entity: "Train", id: "train",
            properties: [.init(column: "a", name: "stops"), .init(column: "b", name: "stops")],
            attributes: [], isPart: true)
        func updated(_ id: String?) -> Change {
            Change(entity: "Train", id: id, properties: ["stops"])
        }
        #expect(part.changes(by: .insert(["train": 1, "a": 2])) == [updated("1")])
        #expect(part.changes(by: .delete(["train": 1])) == [updated("1")])
        #expect(part.changes(by: .truncate) == [updated(nil)])
        #expect(
            part.changes(by: .update(from: ["train": 1], to: ["train": 2]))
                == [updated("1"), updated("2")])
        let whole = TableMapping(
            schema: "public", table: "stops", entity: "Stop", id: "id", properties: [],
            attributes: [], isPart: false)
        #expect(
            whole.changes(by: .update(from: ["id": 1, "a": "é"], to: ["id": 1, "a": "e\u{301}"]))
                == [Change(entity: "Stop", id: "1")])
        #expect(whole.changes(by: .update(from: ["id": 1], to: ["id": 1])).isEmpty)
        let insert = Change(entity: "Stop", operation: .insert)
        #expect(whole.changes(by: .insert(["id": ["scale": 1]])) == [insert], "no scalar")
        #expect(whole.changes(by: .insert(["id": nil])).isEmpty)
    }

    @Test func aTransactionIsConfirmedAsAWhole() throws {
        var feed = try feed()
        func receive(_ messages: [Bytes]) throws {
            for bytes in messages { _ = try feed.receive(ReplicationMessage(bytes.bytes)) }
        }
        let insert = Bytes.row("I").row("N", ["1", "5", "t"])
        let first: [Bytes] = [.relation("f"), .begin(90), insert, insert]
        try receive([Bytes.keepalive(50)] + first + [Bytes.keepalive(80)])
        #expect(feed.position == 50)
        try receive([.commit(100)])
        #expect(feed.position == 100)
        let ids = feed.events.map(\.id)
        #expect(Set(ids).count == 2, "one row changes twice")
        feed.events = []
        // After a failure the server sends it again.
        try receive(first)
        #expect(feed.events.map(\.id) == ids)
        // A database that was restored commits something else there.
        try receive([.begin(90, 1), insert])
        #expect(feed.events.last.map { !ids.contains($0.id) } == true)
        try receive([.commit(100), .keepalive(120)])
        #expect(feed.position == 120)
    }

    // MARK: Mapping

    @Test(arguments: [
        ("{}", "tables: must have a table"),
        ("tables: [{ table: t }]", "tables[0].entity: is required"),
        ("tables: [{ table: t, entity: E, part: 7 }]", "tables[0].part: must be true or false"),
        ("tables: [{ table: t, entity: E, colums: [a] }]", "tables[0].colums: is unknown"),
        ("tables: [{ table: t, entity: E, properties: [a=] }]", "`a=` is not column[=name]"),
        ("tables: [{ table: t, entity: E, attributes: [id] }]", "cannot be called id"),
    ])
    func faultsOfAMappingAreNamed(text: String, fault: String) throws {
        do {
            _ = try FeedMapping(JSONValue(yaml: text))
            Issue.record("it is accepted")
        } catch {
            #expect("\(error)".contains(fault), "\(error)")
        }
    }

    @Test func aCatalogSaysWhatNoRuleUses() throws {
        let catalog = try Catalog(
            JSONValue(
                yaml: """
                    app: com.railway
                    entities: { Train: { properties: [delay, track] } }
                    widgets:
                      - kind: k
                        configuration: static
                        families: [systemSmall]
                        dependsOn:
                          - { entity: Train, match: { line: $client.line }, properties: [delay] }
                    """), app: nil, limits: Limits())
        func faults(_ tables: String) throws -> [String] {
            try FeedMapping(JSONValue(yaml: "tables: [\(tables)]")).differences(from: catalog)
                .list.map(\.description)
        }
        #expect(
            try faults("{ table: t, entity: Train, properties: [delay], attributes: [a=line] }")
                .isEmpty)
        let found = try faults(
            """
            { table: t, entity: Train, properties: [delay, track], attributes: [lines] }, \
            { table: u, entity: Trains }
            """)
        #expect(found.count == 4, "\(found)")
        #expect(found.contains("tables[0].properties: no rule uses `track`"), "\(found)")
        #expect(
            found.contains(
                "tables[0].attributes: no rule compares `lines`; did you mean `line`?"),
            "\(found)")
        #expect(found.contains { $0.hasPrefix("tables[0].attributes: lack `line`") }, "\(found)")
        #expect(found.last?.hasSuffix("did you mean `Train`?") == true, "\(found)")
    }

    // MARK: Debezium

    /// A record of the PostgreSQL connector, as Debezium documents it.
    private static func record(
        _ operation: String, before: String = "null", after: String = "null", lsn: Int = 24_023_128,
        version: String = "3.0.0.Final"
    ) -> String {
        """
        {"before": \(before), "after": \(after), "source": {"version": "\(version)",
         "connector": "postgresql", "name": "shop", "ts_ms": 1559033904863, "snapshot": "false",
         "db": "postgres", "sequence": "[null,\\"\(lsn)\\"]", "schema": "public",
         "table": "trains", "txId": 555, "lsn": \(lsn), "xmin": null},
         "op": "\(operation)", "ts_ms": 1559033904900, "transaction": null}
        """
    }

    private func events(_ records: String) throws -> [DatabaseEvent] {
        try FeedMapping(JSONValue(yaml: Self.mapping)).events(
            of: JSONValue(parsing: Array(records.utf8)))
    }

    private static let row = #"{"id": 1, "delay": 5, "late": true}"#
    private static let later = #"{"id": 1, "delay": 6, "late": true}"#

    private static let records: [(String, Change)] = [
        (record("c", after: row), Change(entity: "Train", id: "1", operation: .insert)),
        (
            record("u", before: row, after: later),
            Change(entity: "Train", id: "1", properties: ["delay"])
        ),
        (record("d", before: row), Change(entity: "Train", id: "1", operation: .delete)),
        (
            "{\"schema\": {\"type\": \"struct\"}, \"payload\": \(record("d", before: row))}",
            Change(entity: "Train", id: "1", operation: .delete)
        ),
        (
            """
            {"id": "name:shop;lsn:29274832;txId:565", "source": "/debezium/postgresql/shop",
             "specversion": "1.0", "type": "io.debezium.connector.postgresql.DataChangeEvent",
             "time": "2020-01-13T13:55:39.738Z", "datacontenttype": "application/json",
             "iodebeziumop": "u", "iodebeziumversion": "3.0.0.Final",
             "iodebeziumconnector": "postgresql", "iodebeziumname": "shop",
             "iodebeziumtsms": "1578923739738", "iodebeziumsnapshot": "false",
             "iodebeziumdb": "postgres", "iodebeziumschema": "public",
             "iodebeziumtable": "trains", "iodebeziumlsn": "29274832", "iodebeziumxmin": null,
             "data": {"before": \(row), "after": \(later)}}
            """, Change(entity: "Train", id: "1", properties: ["delay"])
        ),
    ]

    @Test(arguments: records)
    func recordsOfDebeziumAreRead(record: String, expected: Change) throws {
        var expected = expected
        expected.attributes = ["late": ["true"]]
        for records in [record, "[\(record), null]"] {
            let events = try events(records)
            #expect(events.map(\.change) == [expected.json.serialized])
            #expect(events.map(\.source) == [DatabaseEvent.feed])
            #expect(events.allSatisfy { CloudEvent.isTimestamp($0.time) })
        }
    }

    @Test func theSameRecordIsTheSameEvent() throws {
        let id = try events(Self.record("c", after: Self.row)).first?.id
        #expect(id?.isEmpty == false)
        // After a restart, a connector may write these members differently.
        let again = Self.record("c", after: Self.row, version: "3.1.0.Final")
        #expect(try events(again.replacing("[null,", with: "[1,")).first?.id == id)
        #expect(try events(Self.record("c", after: Self.row, lsn: 1)).first?.id != id)
        #expect(try events(Self.record("d", before: Self.row)).first?.id != id)
        let batch = "[\(Self.record("c", after: Self.row)), \(Self.record("d", before: Self.row))]"
        #expect(try events(batch).count == 2)
        #expect(DatabaseEvent.time(milliseconds: .max) == "2199-12-31T23:59:59Z")
    }

    @Test func otherRecordsAnnounceNothing() throws {
        for record in [
            "null", #"{"schema": {}, "payload": null}"#, "[]", #"{"ts_ms": 1559033904863}"#,
            Self.record("r", after: Self.row), Self.record("m"),
            #"{"status": "BEGIN", "id": "571:1", "event_count": null, "ts_ms": 1}"#,
            #"{"source": {}, "databaseName": "d", "ddl": "CREATE", "tableChanges": []}"#,
            Self.record("c", after: Self.row).replacing("\"trains\"", with: "\"other\""),
            Self.record("u", before: Self.row, after: Self.row),
        ] {
            #expect(try events(record).isEmpty, "\(record)")
        }
        // Not repeated, and so not changed.
        let apart = Self.later.replacing("6", with: "\"__debezium_unavailable_value\"")
        #expect(try events(Self.record("u", before: Self.row, after: apart)).isEmpty)
        // Without the row before, everything may have changed.
        let changed = try events(Self.record("u", after: Self.row)).map(\.change)
        #expect(changed == [Change(entity: "Train", id: "1").json.serialized])
        let truncated = try events(Self.record("t")).map(\.change)
        #expect(truncated == [Change(entity: "Train", operation: .delete).json.serialized])
    }

    @Test func recordsThatSayTooLittleAreNamed() throws {
        func read(_ mapping: String, _ record: String) throws -> ([DatabaseEvent], [String]) {
            var complaints: [String] = []
            let events = try FeedMapping(JSONValue(yaml: mapping)).events(
                of: JSONValue(parsing: record)
            ) { complaints.append($0) }
            return (events, complaints)
        }
        // Without REPLICA IDENTITY FULL only the key is known of a deleted row.
        let (events, complaints) = try read(
            "tables: [{ table: trains, entity: Line, id: line, part: true }]",
            Self.record("d", before: #"{"id": 1, "line": null}"#))
        #expect(events.map(\.change) == [Change(entity: "Line").json.serialized])
        #expect(complaints.count == 1 && complaints[0].contains("`line`"), "\(complaints)")
        let (none, unmapped) = try read(
            "tables: [{ table: trams, entity: Tram }]", Self.record("c", after: Self.row))
        #expect(none.isEmpty)
        #expect(unmapped.count == 1 && unmapped[0].contains(#""public"."trains""#), "\(unmapped)")
    }

    @Test(arguments: [
        ("7", "[0]: must be an object, not an integer"),
        (#"[null, {"id": 1, "delay": 5}]"#, "[1]: is not a change of Debezium"),
        (#"{"op": "x"}"#, "[0].op: must be c, u, d, t, r or m"),
        (#"{"op": "c", "after": 7}"#, "[0].after: must be the row, an object, not an integer"),
        (#"{"op": "c", "after": {}}"#, "[0].source: must name"),
        (#"{"specversion": "1.0", "data": 7}"#, "[0].data: must be an object, not an integer"),
    ])
    func whatIsNoRecordIsNamed(record: String, fault: String) throws {
        do {
            _ = try events(record)
            Issue.record("it is accepted")
        } catch {
            #expect("\(error)".hasPrefix(fault), "\(error)")
        }
    }
}
