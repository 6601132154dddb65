import ClusterTestSupport
import FleetAdministration
import Foundation
import GatewayPostgres
import GatewayTestSupport
import Testing
import WidgetModel

/// The commands of an operator, as processes, on a real server.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct ClusterCommandTests {
    private struct Run {
        let isSuccess: Bool
        let output: String
        let complaint: String

        var object: JSONObject? { try? JSONValue(parsing: Array(output.utf8)).objectValue }
    }

    /// A database without roles or schema of a cluster, on a server of its own.
    private let server: PostgresServer

    init() throws { server = try PostgresServer() }

    private func url(_ user: String = "postgres") -> String {
        "postgres:///postgres?host=\(server.host)&port=5432&user=\(user)"
    }

    private func cluster(_ arguments: String...) throws -> Run {
        let program = try TestProgram(
            try TestProgram.path(of: "timeline-gateway"), ["cluster"] + arguments)
        let exit = program.waitForExit(seconds: Patience.seconds)
        return Run(
            isSuccess: exit == .status(0),
            output: program.waitForOutput(seconds: Patience.seconds) ?? "",
            complaint: program.standardErrorTail)
    }

    @Test func preparingIsRepeatableAndSaysWhatItDid() throws {
        let missing = try cluster("status", "--database", url())
        #expect(!missing.isSuccess && missing.complaint.contains("cluster prepare"))
        let first = try cluster("prepare", "--database", url())
        #expect(first.isSuccess, "\(first.complaint)")
        #expect(first.output.contains("roles: created"))
        #expect(first.output.contains("schema: created, version \(ClusterSchema.version)"))
        let again = try cluster("prepare", "--database", url(), "--json")
        #expect(again.object?["createdRoles"] == false)
        #expect(again.object?["versionBefore"] == .integer(ClusterSchema.version))
        let log = again.object?["log"]?.stringValue ?? "none"
        #expect(first.output.contains("log: \(log)"))
        // An operator needs no right to create roles for it, and no one else may do it.
        try server.execute(
            "CREATE ROLE operator LOGIN; GRANT tg_operator TO operator; CREATE ROLE stray LOGIN")
        #expect(try cluster("prepare", "--database", url("operator")).isSuccess)
        let stray = try cluster("prepare", "--database", url("stray"))
        #expect(!stray.isSuccess && stray.complaint.contains("GRANT tg_operator TO stray"))
        // A database that a newer program has migrated is left as it is.
        try server.execute("INSERT INTO tg.migration VALUES (\(ClusterSchema.version + 1))")
        let newer = try cluster("prepare", "--database", url("operator"))
        #expect(!newer.isSuccess && newer.complaint.contains("newer program"))
    }

    @Test func faultsNameTheOption() throws {
        try server.execute("CREATE ROLE stray LOGIN")
        let plain = try cluster(
            "status", "--database", "postgres://me@localhost/db?password=secret")
        #expect(!plain.isSuccess && plain.complaint.contains("database: sslmode"))
        #expect(!plain.complaint.contains("secret"))
        let roles = try cluster("prepare", "--database", url("stray"))
        #expect(!roles.isSuccess && roles.complaint.contains("CREATEROLE"), "\(roles.complaint)")
        let slice = try cluster("prepare", "--database", url(), "--slice", "5")
        #expect(!slice.isSuccess && slice.complaint.contains("slice: "))
        let unprepared = try cluster(
            "node", "add", "--database", url(), "--login", "node1", "--create-login")
        #expect(!unprepared.isSuccess && unprepared.complaint.contains("cluster prepare"))
        #expect(try cluster("prepare", "--database", url()).isSuccess)
        for (option, arguments) in [
            ("login", ["--login", "Node-1", "--create-login"]), ("login", ["--login", "node1"]),
            ("url", ["--login", "node1", "--create-login", "--url", "http://node"]),
        ] {
            let program = try TestProgram(
                try TestProgram.path(of: "timeline-gateway"),
                ["cluster", "node", "add", "--database", url()] + arguments)
            #expect(program.waitForExit(seconds: Patience.seconds) == .status(1))
            #expect(program.standardErrorTail.contains("\(option): "), "\(arguments)")
        }
    }

    @Test func aNodeIsAddedWritesAndIsRemovedOnceItsLeaseRanOut() throws {
        #expect(try cluster("prepare", "--database", url()).isSuccess)
        try server.execute("CREATE ROLE operator LOGIN CREATEROLE; GRANT tg_operator TO operator")
        let add = [
            "node", "add", "--database", url("operator"), "--login", "node1", "--url",
            "https://node-1.example.com", "--create-login", "--json",
        ]
        func run(_ arguments: [String]) throws -> TestProgram {
            let program = try TestProgram(
                try TestProgram.path(of: "timeline-gateway"), ["cluster"] + arguments)
            _ = program.waitForExit(seconds: Patience.seconds)
            // Its output is read by another thread.
            _ = program.waitForOutput(seconds: Patience.seconds)
            return program
        }
        let first = try run(add)
        #expect(try first.json(line: 0)?["node"] == 1, "\(first.standardErrorTail)")
        #expect(try run(add).json(line: 0)?["isNew"] == false)
        let other = try cluster(
            "node", "add", "--database", url("operator"), "--login", "node1", "--url",
            "https://other.example.com")
        #expect(!other.isSuccess && other.complaint.contains("url: node 1"))

        let node = try PostgresAdministration(try server.address(user: "node1"))
        let generation = try node.rows("SELECT o_generation FROM tg.fence()").first?.integer(0)
        let old = try #require(generation)
        try node.execute(
            "SELECT tg.attach(1, true); SELECT tg.renew(true, '{}'); SELECT tg.take('{1,2,4098}', '{}', '{}')"
        )
        try server.execute("UPDATE tg.node_seen SET until = clock_timestamp() + interval '1 h'")
        let remove = ["node", "remove", "--database", url("operator"), "--login", "node1"]
        let early = try run(remove)
        #expect(early.standardErrorTail.contains("lease of node 1 still runs"))
        try server.execute("UPDATE tg.node_seen SET until = clock_timestamp() - interval '1 s'")
        #expect(try run(remove).output == "node 1 removed, 3 partitions released\n")
        #expect(throws: PostgresError.self) { try node.execute("SELECT tg.fence()") }
        #expect(
            try !server.administration().rows(
                "SELECT 1 FROM tg.owner WHERE node IS NULL AND part = 1 AND generation = 2"
            ).isEmpty)
        // The number is given again, but what the former node sends stays refused.
        #expect(try run(add).json(line: 0)?["node"] == 1)
        let again = try node.rows("SELECT o_generation FROM tg.fence()").first?.integer(0)
        #expect(try #require(again) > old)
    }

    @Test func anObserverSeesTheState() throws {
        #expect(try cluster("prepare", "--database", url()).isSuccess)
        #expect(
            try cluster("node", "add", "--database", url(), "--login", "node1", "--create-login")
                .isSuccess)
        try server.execute("CREATE ROLE watcher LOGIN; GRANT tg_observer TO watcher")
        let node = try PostgresAdministration(try server.address(user: "node1"))
        try node.execute(
            """
            SELECT tg.fence(); SELECT tg.attach(1, true); SELECT tg.renew(true, '{}');
            SELECT tg.take('{1,2,4097}', '{}', '{}')
            """)
        let standby = try PostgresServer(standbyOf: server, name: "standby")
        // Whoever keeps an append in an open transaction holds the lock.
        let owner = try server.administration()
        try owner.execute("BEGIN; SELECT FROM tg.log_lock FOR UPDATE")
        let status = try cluster("status", "--database", url("watcher"), "--json")
        let object = try #require(status.object, "\(status.complaint)")
        #expect(object["head"] == 0 && object["floor"] == 0 && object["slicesAhead"] == 2)
        #expect(object["chain"]?.stringValue?.count == 32)
        #expect(object["unownedPartitions"] == 4094)
        #expect(object["synchronousStandbyNames"] == "")
        let shown = object["nodes"]?.arrayValue?.first?.objectValue
        #expect(shown?["login"] == "node1" && shown?["partitions"] == 2)
        #expect(shown?["leases"] == ["retention"] && shown?["serves"] == true)
        #expect(
            object["standbys"] == [["name": "standby", "mode": "async"]])
        let holders = object["lockHolders"]?.arrayValue ?? []
        #expect(holders.count == 1)
        #expect(holders.first?.objectValue?["login"] == "postgres")
        #expect(holders.first?.objectValue?["waitsForStandby"] == false)
        let text = try cluster("status", "--database", url("watcher"))
        #expect(text.output.contains("partitions 2 owned, 4094 not"))
        #expect(text.output.contains("standby (async)"))
        withExtendedLifetime(standby) {}
    }

    @Test func adviceFollowsFromTheState() {
        var status = ClusterStatus(
            version: 1, log: "l", isClosed: false, head: 5, chain: "", slicesAhead: 2, floor: 0,
            snapshot: nil, nodes: [], unowned: 0, standbyNames: "ANY 1 (a)", isSafe: true,
            standbys: [.init(name: "a", mode: "quorum")], lockHolders: [])
        #expect(status.advice.isEmpty)
        var holder = ClusterStatus.LockHolder(
            process: 7, login: "node1", seconds: 1.9, waitsForStandby: false)
        status.lockHolders = [holder]
        #expect(status.advice.isEmpty)
        holder.seconds = 2.1
        status.lockHolders = [holder]
        #expect(status.advice.first?.contains("pg_terminate_backend(7)") == true)
        // It must not be ended: what waits may not be seen before a standby has it.
        holder.waitsForStandby = true
        (status.lockHolders, status.standbys) = ([holder], [])
        #expect(status.advice.count == 1 && status.advice[0].contains("start one"))
        (status.lockHolders, status.slicesAhead, status.isSafe) = ([], 1, false)
        #expect(status.advice.count == 2)
    }
}
