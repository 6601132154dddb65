import ClusterTestSupport
import Foundation
import GatewayCluster
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

    private func run(_ arguments: String...) throws -> Run {
        let program = try TestProgram(try TestProgram.path(of: "timeline-gateway"), arguments)
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
            INSERT INTO timeline.node VALUES ('a:1', gen_random_uuid(), 0, 1, now()),
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
}
