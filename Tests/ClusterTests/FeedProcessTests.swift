import ClusterTestSupport
import Foundation
import GatewayCluster
import GatewayTestSupport
import Testing
import WidgetModel

@testable import timelinectl

/// Change feeds as processes: of a slot, and of what connectors post.
@Suite(.enabled(if: PostgresServer.isInstalled))
struct FeedProcessTests {
    private let gateways: ClusterGateways
    private let gateway: GatewayProcess
    private let directory: String
    private let mapping: String

    init() throws {
        gateways = try ClusterGateways(ClusterFixture())
        gateway = try gateways.startAlone()
        try gateways.putCatalog(gateway)
        directory = try GatewayProcess.temporaryDirectory()
        mapping = directory + "/feed.yaml"
        try "tables: [{ table: characters, entity: Character, properties: [hp=health] }]".write(
            toFile: mapping, atomically: true, encoding: .utf8)
    }

    private func program(_ arguments: [String]) throws -> TestProgram {
        try TestProgram(
            TestProgram.path(of: "timelinectl"),
            arguments + [
                "--mapping", mapping, "--url", gateway.url, "--ca", gateway.ca, "--app",
                ClusterGateways.app,
            ], environment: ["TIMELINE_GATEWAY_TOKEN": gateways.backend()])
    }

    /// Returns the sequence of a change that is posted now. Sequences have no gaps.
    private func sequence(_ event: String) throws -> Int64 {
        try #require(gateways.change("other", id: event, at: gateway)["sequence"]?.integerValue)
    }

    @Test func aFeedPostsEachChangeOnce() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let database = try PostgresServer(["wal_level": "logical"])
        let owner = try database.administration()
        let printed = try GatewayProcess.timelinectl(["feed", "init", "--mapping", mapping])
        let slot = try #require(printed.output.range(of: "SELECT pg_create")?.lowerBound)
        let (publication, creation) = (printed.output[..<slot], printed.output[slot...])
        // Without the table no slot is made, though psql goes on after errors.
        #expect(throws: PostgresError.self) { try owner.execute(String(publication)) }
        try owner.execute(String(creation))
        #expect(try owner.rows("SELECT FROM pg_replication_slots").isEmpty)
        try owner.execute(
            """
            CREATE TABLE characters (id text PRIMARY KEY, hp int, note text) PARTITION BY HASH (id);
            CREATE TABLE part PARTITION OF characters FOR VALUES WITH (MODULUS 1, REMAINDER 0);
            CREATE TABLE unmapped (number int)
            """)
        // Twice, and not in one transaction.
        for _ in 0..<2 {
            try owner.execute(String(publication))
            try owner.execute(String(creation))
        }
        try owner.execute("ALTER PUBLICATION timeline_feed ADD TABLE unmapped")
        func feed() throws -> TestProgram {
            try program([
                "feed", "run", "--json", "--database",
                "postgres://postgres@/postgres?host=\(database.host)&port=\(database.port)",
            ])
        }
        func awaitConfirmation() throws {
            let position = try #require(
                owner.rows("SELECT pg_current_wal_lsn()::text").first
            ).text(0)
            try blockUntil("the feed confirms \(position)") {
                try !owner.rows(
                    """
                    SELECT FROM pg_replication_slots
                    WHERE confirmed_flush_lsn >= '\(position)'::pg_lsn
                    """
                ).isEmpty
            }
        }
        let before = try sequence("before")
        let killed = try feed()
        try owner.execute("INSERT INTO characters SELECT n, 1, '' FROM generate_series(1, 2500) n")
        killed.kill()
        // The rest by one of two, and nothing for what no property is.
        let feeds = try (0..<2).map { _ in try feed() }
        for sql in [
            "UPDATE characters SET note = 'n', hp = hp",
            "UPDATE characters SET hp = 2 WHERE id = '1'",
            "BEGIN; DELETE FROM characters; ROLLBACK",
            "UPDATE characters SET id = 'one' WHERE id = '1'",
            "INSERT INTO unmapped VALUES (1)",
        ] { try owner.execute(sql) }
        try awaitConfirmation()
        for feed in feeds { feed.signal(SIGTERM) }
        for feed in feeds {
            #expect(feed.waitForExit() == .status(0), "\(feed.standardErrorTail)")
        }
        #expect(try sequence("after") == before + 2_500 + 1 + 2 + 1)
        let complaints = feeds.map(\.standardErrorTail).joined()
        #expect(complaints.contains(#""public"."unmapped" is published"#), "\(complaints)")
        #expect(!complaints.contains("FULL"), "\(complaints)")
    }

    @Test func aMissingSlotIsNamed() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let database = try PostgresServer(["wal_level": "logical"])
        let feed = try program([
            "feed", "run", "--slot", "none", "--database",
            "postgres://postgres@/postgres?host=\(database.host)&port=\(database.port)",
        ])
        #expect(feed.waitForExit() == .status(1))
        let error = feed.standardErrorTail
        #expect(
            error.contains("\"none\" does not exist") && error.contains("feed init"), "\(error)")
    }

    @Test func connectorsPostRecords() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let receiver = try program(["feed", "serve", "--listen", "127.0.0.1:0"])
        let url = try #require(receiver.waitForLine(prefix: "ready ")).dropFirst("ready ".count)
        let http = TestHTTP(url: String(url.dropLast()), ca: "/dev/null")
        func record(_ operation: String, lsn: Int) -> String {
            """
            {"before": null, "after": {"id": "panda", "hp": 7}, "op": "\(operation)", "source":
             {"schema": "public", "table": "characters", "name": "game", "lsn": \(lsn)}}
            """
        }
        func post(_ body: String) throws -> Int {
            try http.request("POST", "/", body: body).status
        }
        let before = try sequence("before")
        #expect(try post(record("c", lsn: 1)) == 204)
        // A batch, with a record that was posted before and one of a snapshot.
        let batch = [record("c", lsn: 1), record("u", lsn: 2), record("r", lsn: 3), "null"]
        #expect(try post("[\(batch.joined(separator: ","))]") == 204)
        #expect(try sequence("after") == before + 3)
        #expect(try post("{") == 400)
        let foreign = try http.request("POST", "/", body: #"{"id": "panda"}"#)
        #expect(foreign.status == 400 && foreign.text.contains("Nothing of this batch is posted"))
        #expect(try http.request("GET", "/").status == 405)
        let type = [("Content-Type", "text/plain")]
        #expect(try http.request("POST", "/", headers: type, body: "null").status == 415)
        let host = [("Host", "evil.example")]
        #expect(try http.request("POST", "/", headers: host, body: "null").status == 403)
        gateway.kill()
        let refused = try http.request("POST", "/", body: record("u", lsn: 4))
        #expect(refused.status == 503 && refused.header("retry-after") != nil, "\(refused.text)")
        receiver.signal(SIGTERM)
        #expect(receiver.waitForExit() == .status(0), "\(receiver.standardErrorTail)")
    }
}

@Suite struct FeedErrorTests {
    @Test func finalErrorsSayWhatToDo() {
        for reason in [
            "FATAL:  must be superuser or replication role to start walsender",
            "FATAL:  permission denied to start WAL sender",
        ] {
            let error = PostgresError.connectionLost(reason: reason)
            #expect(FeedRunner.isFinal(error))
            #expect(FeedRunner.text(of: error, slot: "s").contains("ALTER ROLE"))
        }
        #expect(!FeedRunner.isFinal(.connectionLost(reason: "Connection refused")))
        let lost = PostgresError.other(sqlState: "55000", message: "the slot is lost")
        #expect(FeedRunner.isFinal(lost))
        #expect(
            FeedRunner.text(of: lost, slot: "s").contains("SELECT pg_drop_replication_slot('s')"))
    }
}
