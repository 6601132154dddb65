import ClusterTestSupport
import Foundation
import GatewayOperations
import GatewayStorage
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCluster

/// The commands of an operator, as processes, on a real server.
@Suite(.enabled(if: PostgresServer.isInstalled), .repeatedAfterStalls)
struct ClusterCommandTests {
    private struct Run {
        let isSuccess: Bool
        let output: String
        let complaint: String

        var object: JSONObject? { try? JSONValue(parsing: Array(output.utf8)).objectValue }
    }

    /// A database without roles or rows of a cluster, on a server of its own.
    private let server: PostgresServer
    private let key: String

    init() throws {
        server = try PostgresServer()
        key = server.directory + "/cluster.key"
        try Self.write(key, 7)
    }

    private static func write(_ path: String, _ byte: UInt8) throws {
        try Data(repeating: byte, count: Seal.keyBytes).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }

    private func url(_ user: String = "postgres") -> String {
        "postgres:///postgres?host=\(server.host)&port=5432&user=\(user)"
    }

    private func run(
        _ arguments: String..., program name: String = "timeline-gateway"
    ) throws -> Run {
        let program = try TestProgram(try TestProgram.path(of: name), arguments)
        let exit = program.waitForExit(seconds: Patience.seconds)
        return Run(
            isSuccess: exit == .status(0),
            output: program.waitForOutput(seconds: Patience.seconds) ?? "",
            complaint: program.standardErrorTail)
    }

    @Test func preparingIsRepeatableAndSaysWhatItDid() throws {
        let missing = try run("cluster", "status", "--database", url())
        #expect(!missing.isSuccess && missing.complaint.contains("cluster prepare"))
        try server.execute("CREATE ROLE gateway LOGIN; CREATE ROLE stray LOGIN")
        let stray = try run("cluster", "prepare", "--database", url("stray"), "--key", key)
        #expect(!stray.isSuccess && stray.complaint.contains("CREATEROLE"), "\(stray.complaint)")
        let first = try run(
            "cluster", "prepare", "--database", url(), "--key", key, "--login", "gateway")
        #expect(first.isSuccess, "\(first.complaint)")
        #expect(first.output.contains("cluster: created"))
        let again = try run("cluster", "prepare", "--database", url(), "--key", key, "--json")
        #expect(again.object?["isNew"] == false)
        let log = again.object?["log"]?.stringValue ?? "none"
        #expect(first.output.contains("log: \(log)"))
        let other = server.directory + "/other.key"
        try Self.write(other, 8)
        let wrong = try run("cluster", "prepare", "--database", url(), "--key", other)
        #expect(!wrong.isSuccess && wrong.complaint.contains("cluster keys"), "\(wrong.complaint)")
        let unknown = try run(
            "cluster", "prepare", "--database", url(), "--key", key, "--login", "nobody")
        #expect(!unknown.isSuccess && unknown.complaint.contains("login: "))
        let plain = try run(
            "cluster", "status", "--database", "postgres://me@localhost/db?password=secret")
        #expect(!plain.isSuccess && plain.complaint.contains("database: sslmode"))
        #expect(!plain.complaint.contains("secret"))
        // A node may append, and not change what was appended.
        let node = try PostgresAdministration(try server.address(user: "gateway"))
        #expect(throws: PostgresError.self) {
            try node.execute("UPDATE timeline.batch SET head = 1")
        }
        try server.execute("UPDATE timeline.cluster SET format = 99")
        let newer = try run("cluster", "prepare", "--database", url(), "--key", key)
        #expect(!newer.isSuccess && newer.complaint.contains("format is 99"))
    }

    @Test func anObserverSeesTheState() throws {
        #expect(try run("cluster", "prepare", "--database", url(), "--key", key).isSuccess)
        try server.execute(
            """
            CREATE ROLE watcher LOGIN; GRANT timeline_observer TO watcher;
            INSERT INTO timeline.node VALUES ('a:1', gen_random_uuid(), 0, 1, now() + interval '1 h'),
              ('b:2', gen_random_uuid(), 0, 1, now() - interval '1 h');
            UPDATE timeline.leader
            SET node = 'a:1', generation = 3, until = clock_timestamp() + interval '1 h'
            """)
        let status = try run("cluster", "status", "--database", url("watcher"), "--json")
        let object = try #require(status.object, "\(status.complaint)")
        #expect(object["head"] == 0 && object["generation"] == 3 && object["quorum"] == "")
        let nodes = object["nodes"]?.arrayValue?.compactMap(\.objectValue) ?? []
        #expect(nodes.map { $0["leads"] } == [true, false])
        let text = try run("cluster", "status", "--database", url("watcher")).output
        #expect(text.contains("a:1  leads") && text.contains("to do: b:2 is silent"), "\(text)")
        #expect(text.contains("to do: commits wait for no standby"))
        #expect(
            try !run("cluster", "forget", "--database", url(), "--node", "a:1").isSuccess)
        #expect(
            try run("cluster", "forget", "--database", url(), "--node", "b:2").isSuccess)
        #expect(try run("cluster", "epoch", "--database", url()).isSuccess)
        #expect(
            try run("cluster", "status", "--database", url()).output.contains("voids all cursors"))
        #expect(throws: PostgresError.self) {
            try PostgresAdministration(try server.address(user: "watcher")).rows(
                "SELECT body FROM timeline.batch")
        }
    }

    /// Returns what `doctor` finds that is not in order, a line each.
    private func faults(
        of user: String = "gateway", key: UInt8 = 7, waitsForStandby: Bool = false
    ) throws -> String {
        let node = ClusterNode.Configuration(
            address: try server.address(user: user),
            seal: try Seal(Array(repeating: key, count: Seal.keyBytes)), name: "a:1",
            waitsForStandby: waitsForStandby)
        return ClusterExamination.findings(of: node, runsHere: false).filter { $0.level != .ok }
            .map { "\($0.level) \($0.subject): \($0.what)" }.joined(separator: "\n")
    }

    @Test func whatKeepsANodeFromItsDatabaseIsFound() throws {
        try server.execute("CREATE ROLE gateway LOGIN; CREATE ROLE stray LOGIN")
        #expect(try faults() == "fail cluster: the database has no cluster")
        let prepared = try run(
            "cluster", "prepare", "--database", url(), "--key", key, "--login", "gateway")
        #expect(prepared.isSuccess, "\(prepared.complaint)")
        #expect(try faults() == "")
        #expect(
            try faults(of: "stray") == "fail cluster login: stray is not a member of timeline_node")
        #expect(try faults(of: "postgres").hasPrefix("warn cluster login: postgres owns"))
        #expect(try faults(key: 8) == "fail cluster.key: does not open what the cluster sealed")
        try server.execute("ALTER ROLE gateway SET synchronous_commit = off")
        #expect(try faults().hasPrefix("fail durability: synchronous_commit is off"))
        try server.execute("ALTER ROLE gateway RESET synchronous_commit")
        try server.execute(
            "INSERT INTO timeline.node VALUES ('a:1', gen_random_uuid(), -10001, 1, 'epoch')")
        #expect(try faults() == "warn cluster.node: a:1 is 10001 batches behind")
        try server.execute("UPDATE timeline.cluster SET format = 99")
        #expect(try faults().hasPrefix("fail cluster: its format is 99"))
        try server.set("fsync", "off")
        try blockUntil("fsync is found to be off") { try faults().contains("fsync is off") }
        #expect(try faults(waitsForStandby: true).contains("commits wait for no standby"))
        try server.set("synchronous_standby_names", "nobody")
        try blockUntil("the standby is missed") {
            try faults(waitsForStandby: true).contains("no standby confirms")
        }
        let status = try run("cluster", "status", "--database", url()).output
        #expect(status.contains("standbys: 0") && status.contains("to do: no standby confirms"))
    }

    @Test func anotherProcessOfTheNameIsFound() throws {
        try server.execute("CREATE ROLE gateway LOGIN")
        let prepared = try run(
            "cluster", "prepare", "--database", url(), "--key", key, "--login", "gateway")
        #expect(prepared.isSuccess, "\(prepared.complaint)")
        try server.execute("ALTER TABLE timeline.node RENAME TO nodes")
        // A node that reports whenever somebody looks, with a start of its own or ever new ones.
        for (start, what) in [
            ("log_id", "runs, and not on this data directory"),
            ("gen_random_uuid()", "just began again"),
        ] {
            try server.execute(
                """
                DROP VIEW IF EXISTS timeline.node;
                CREATE VIEW timeline.node AS SELECT 'a:1'::text AS name, \(start) AS start,
                  0::bigint AS position, clock_timestamp() AS seen FROM timeline.cluster;
                GRANT SELECT ON timeline.node TO timeline_node;
                """)
            #expect(try faults().contains(what))
        }
    }

    @Test func aStandbyIsShownAsFarAsTheLoginMaySee() throws {
        let cluster = try ClusterFixture(nodes: 1, hasQuorum: true)
        try cluster.execute("CREATE ROLE watcher LOGIN IN ROLE timeline_observer")
        for (login, state) in [("watcher", "quorum"), ("node1", "hidden")] {
            let status = try ClusterAdministration(cluster.connection(as: login)).status()
            #expect(status.standbys.map(\.state) == [state])
            #expect(!status.advice.contains { $0.contains("standby") })
        }
    }

    @Test func aConfigurationIsCheckedWithItsKeyAndItsAddress() throws {
        let file = server.directory + "/gateway.yaml"
        func write(_ url: String) throws {
            try """
            publicURL: https://localhost
            data: \(server.directory)/node
            tls: { certificate: none.pem, key: none.key }
            localIssuer: true
            cluster:
              url: \(url)
              key: \(key)
              node: 127.0.0.1:7000
            """.write(toFile: file, atomically: true, encoding: .utf8)
        }
        try write("postgres://me@db/timeline")
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
        let checked = try run("check-config", "--config", file, "--json")
        let places = checked.object?["faults"]?.arrayValue?.map { $0.objectValue?["place"] }
        #expect(!checked.isSuccess)
        #expect(places == ["tls.certificate", "cluster.url", "cluster.key"], "\(checked.output)")
        let refused = try run("doctor", "--config", file, program: "timelinectl").output
        #expect(refused.contains("sslmode: must be verify-full"), "\(refused)")
        #expect(refused.contains("chmod 600"), "\(refused)")
        try Self.write(key, 7)
        try write(url("nobody"))
        let unknown = try run("doctor", "--config", file, program: "timelinectl").output
        #expect(unknown.contains("\"nobody\" does not exist"), "\(unknown)")
        #expect(unknown.contains("Check the login"), "\(unknown)")
    }

    @Test func aNewKeyReplacesTheOldOneWhileANodeRuns() async throws {
        var cluster = try TestCluster()
        let old = try await TestNode("a", of: cluster)
        try await old.untilLeading()
        try await old.append()
        _ = try await old.store.write(cost: 1) { try $0.setMeta("key", Data([2])) }
        try await old.stop()
        let new = Array(repeating: UInt8(8), count: Seal.keyBytes)
        let both = server.directory + "/both.key"
        try Self.write(both, 8)
        let file = try #require(FileHandle(forWritingAtPath: both))
        try file.seekToEnd()
        try file.write(contentsOf: Data(repeating: 7, count: Seal.keyBytes))
        try file.close()
        cluster.seal = try Seal(contentsOf: both)
        let leader = try await TestNode("a", of: cluster, in: old.directory)
        try await leader.untilLeading()
        try await leader.append()
        let database =
            "postgres:///\(cluster.database)?host=\(cluster.server.host)&port=5432&user=postgres"
        let lone = try run("cluster", "reseal", "--database", database, "--key", key + ".none")
        #expect(!lone.isSuccess && lone.complaint.contains("could not be opened"))
        for rows in [3, 0] {
            let done = try run(
                "cluster", "reseal", "--database", database, "--key", both, "--json")
            #expect(done.object?["left"] == 0, "\(done.complaint)")
            #expect((done.object?["rows"]?.integerValue ?? -1) >= rows, "\(done.output)")
            #expect(rows > 0 || done.object?["rows"] == 0, "\(done.output)")
        }
        try await leader.append()
        // Who begins has the new key alone.
        cluster.seal = try Seal(new)
        let fresh = try await TestNode("b", of: cluster)
        try await fresh.node.barrier()
        #expect(try fresh.dump() == leader.dump())
        for node in [leader, fresh] { try await node.stop() }
    }
}
