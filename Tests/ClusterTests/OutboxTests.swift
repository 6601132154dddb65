import ClusterTestSupport
import GatewayCluster
import GatewayTestSupport
import Glibc
import Testing
import WidgetModel

@testable import timelinectl

/// The outbox of a database: its SQL, and pollers as processes.
@Suite(.enabled(if: PostgresServer.isInstalled))
struct OutboxTests {
    private let database: ClusterFixture
    private let owner: PostgresAdministration

    init() throws {
        database = try ClusterFixture()
        owner = try database.administration()
    }

    /// Runs a statement as a role that has no right on the outbox; returns the changes that it left
    /// there.
    private func changes(by sql: String) throws -> [Change] {
        try PostgresAdministration(database.address(user: "node2")).execute(sql)
        let rows = try owner.rows("SELECT change::text FROM timeline_outbox.event ORDER BY id")
        try owner.execute("DELETE FROM timeline_outbox.event")
        return try rows.map {
            try Change(JSONValue(parsing: $0.bytes(0)), at: "", limits: Limits())
        }
    }

    private func install(_ trigger: TableMapping) throws {
        // Twice, as by two migrations.
        for _ in 0..<2 { try owner.execute("\(Outbox.sql)\n\(trigger.triggerSQL)") }
    }

    @Test(arguments: ["train", "we\"\u{301}ird'\u{301} $outbox$\u{301} \\\u{301}; -- é :v"])
    func aTriggerSaysWhatChanged(name: String) throws {
        let quoted = SQL.identifier
        let (schema, table, id) = (quoted(name), quoted(name + "s"), quoted(name + " id"))
        let (delay, line) = (quoted(name + " delay"), quoted(name + " line"))
        let target = "\(schema).\(table)"
        try owner.execute(
            """
            CREATE SCHEMA \(schema); CREATE TABLE \(target) (\(id) bigint, \(delay) json,
              \(line) int, note text);
            GRANT USAGE ON SCHEMA \(schema) TO node2; GRANT ALL ON \(target) TO node2
            """)
        try install(
            TableMapping(
                schema: name, table: name + "s", entity: name, id: name + " id",
                properties: [.init(column: name + " delay", name: name)],
                attributes: [.init(column: name + " line", name: "line")], isPart: false))
        func change(
            _ id: String?, _ operation: Change.Operation = .update, _ properties: [String] = [],
            line: [String]
        ) -> Change {
            Change(
                entity: name, id: id, operation: operation, properties: properties,
                attributes: line.isEmpty ? [:] : ["line": line])
        }
        let steps: [(String, [Change])] = [
            (
                "INSERT INTO \(target) VALUES (1, '{}', 42), (NULL, '{}', 42)",
                [change("1", .insert, line: ["42"])]
            ),
            ("UPDATE \(target) SET note = 'n', \(delay) = \(delay)", []),
            ("UPDATE \(target) SET \(delay) = '[1]'", [change("1", .update, [name], line: ["42"])]),
            ("UPDATE \(target) SET \(delay) = NULL", [change("1", .update, [name], line: ["42"])]),
            ("UPDATE \(target) SET \(line) = 43", [change("1", line: ["42", "43"])]),
            ("UPDATE \(target) SET \(line) = NULL", [change("1", line: [])]),
            ("UPDATE \(target) SET \(line) = 44", [change("1", line: [])]),
            (
                "UPDATE \(target) SET \(id) = 2 WHERE \(id) = 1",
                [change("1", .delete, line: ["44"]), change("2", .insert, line: ["44"])]
            ),
            ("BEGIN; DELETE FROM \(target); ROLLBACK", []),
            ("DELETE FROM \(target)", [change("2", .delete, line: ["44"])]),
            ("TRUNCATE \(target)", [change(nil, .delete, line: [])]),
        ]
        let mode = name == "train" ? "on" : "off"
        for (sql, expected) in steps {
            let found = try changes(by: "SET standard_conforming_strings = \(mode); \(sql)")
            #expect(found == expected, "\(sql)")
        }
    }

    @Test func aRowMayBeAPart() throws {
        try owner.execute(
            "CREATE TABLE stops (train int, track text); GRANT ALL ON stops TO node2")
        try install(
            TableMapping(
                schema: "public", table: "stops", entity: "Train", id: "train",
                properties: [.init(column: "track", name: "stops")], attributes: [], isPart: true))
        func updated(_ id: String?) -> Change {
            Change(entity: "Train", id: id, properties: ["stops"])
        }
        #expect(
            try changes(by: "INSERT INTO stops VALUES (1, 'a'), (NULL, 'b')") == [updated("1")])
        #expect(
            try changes(by: "UPDATE stops SET train = 2 WHERE train = 1")
                == [updated("1"), updated("2")])
        #expect(try changes(by: "DELETE FROM stops") == [updated("2")])
        #expect(try changes(by: "TRUNCATE stops") == [updated(nil)])
    }

    @Test func withoutPropertiesEveryColumnCounts() throws {
        try owner.execute(
            "CREATE TABLE trains (id int, place point); GRANT ALL ON trains TO node2")
        try install(
            TableMapping(
                schema: "public", table: "trains", entity: "Train", id: "id", properties: [],
                attributes: [], isPart: false))
        _ = try changes(by: "INSERT INTO trains VALUES (1, '(1,2)')")
        #expect(try changes(by: "UPDATE trains SET place = '(1,2)'").isEmpty)
        #expect(
            try changes(by: "UPDATE trains SET place = NULL") == [Change(entity: "Train", id: "1")])
    }

    @Test func pollersPostEachEventOnce() throws {
        let gateways = try ClusterGateways(database)
        let gateway = try gateways.startAlone()
        try gateways.putCatalog(gateway)
        func sequence(_ event: String) throws -> Int64 {
            try #require(
                gateways.change("other", id: event, at: gateway)["sequence"]?.integerValue)
        }
        let before = try sequence("before")
        try owner.execute(
            """
            \(Outbox.sql)
            GRANT USAGE ON SCHEMA timeline_outbox TO node1;
            GRANT SELECT, UPDATE, DELETE ON ALL TABLES IN SCHEMA timeline_outbox TO node1;
            SELECT timeline_outbox.announce('Character', n::text) FROM generate_series(1, 2500) n;
            SELECT timeline_outbox.announce('Character', repeat('x', 300))
            """)
        let program = try TestProgram.path(of: "timelinectl")
        let pollers = try (0..<2).map { _ in
            try TestProgram(
                program,
                [
                    "outbox", "run", "--json", "--database", database.url(user: "node1"),
                    "--url", gateway.url, "--ca", gateway.ca, "--app", ClusterGateways.app,
                ], environment: ["TIMELINE_GATEWAY_TOKEN": gateways.backend()])
        }
        let left = "SELECT count(*) FROM timeline_outbox.event WHERE NOT dead"
        try database.wait(for: 0, left)
        // A poller waits, so the next change notifies it.
        try database.wait(
            for: 1, "SELECT count(*) FROM timeline_outbox.poller WHERE waits_until > now()")
        try owner.execute("SELECT timeline_outbox.announce('Character', 'last')")
        try database.wait(for: 0, left)
        for poller in pollers { poller.signal(SIGTERM) }
        for poller in pollers {
            #expect(poller.waitForExit() == .status(0), "\(poller.standardErrorTail)")
        }
        // Sequences have no gaps.
        #expect(try sequence("after") == before + 2_502)
        let status = try GatewayProcess.timelinectl([
            "outbox", "status", "--json", "--database", database.url(user: "node1"),
        ])
        let shown = try JSONValue(parsing: Array(status.output.utf8)).objectValue
        #expect(shown?["waiting"] == 0 && shown?["dead"] == 1, "\(status.output)")
        #expect(status.output.contains("invalid: ["), "\(status.output)")
    }

    @Test func aMissingOutboxIsNamed() throws {
        let status = try GatewayProcess.timelinectl([
            "outbox", "status", "--database", database.url(user: "node1"),
        ])
        #expect(status.exit == .status(1) && status.output.contains("outbox init"))
        #expect(!status.output.contains("cluster prepare"), "\(status.output)")
    }
}
