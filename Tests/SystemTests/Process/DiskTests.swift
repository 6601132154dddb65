import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// Gateways and backups on disks that are really full.
@Suite(.alone, .enabled(if: SmallDisk.isPossible, "mounting takes root")) struct FullDiskTests {
    /// Returns events of about 2 kB each.
    private static func events(_ run: String, _ count: Int = 100) -> [JSONValue] {
        let values = (0..<8).map {
            JSONValue.string("\($0)" + String(repeating: "v", count: 240))
        }
        return (0..<count).map { index in
            [
                "specversion": "1.0", "type": "test.changed", "source": .string(run),
                "id": .string("\(index)"),
                "data": [
                    "entity": "Character", "id": "panda", "attributes": ["of": .array(values)],
                ],
            ]
        }
    }

    @Test
    func `a store that fills its disk says so steadily, and starts again with all it took`()
        throws
    {
        let disk = try SmallDisk(megabytes: 8)
        let data = disk.path + "/data"
        let gateway = try GatewayProcess(data: data, admin: GatewayProcess.freeAddress())
        let admin = gateway.adminHTTP()
        let game = try GameFixture(gateway)
        let client = try game.client("phone", ["panda"])
        let http = gateway.http()
        func post(_ run: String) throws -> TestHTTPAnswer {
            try http.post(Self.events(run), app: GameFixture.app, token: game.backend)
        }
        var taken = 0
        var answer = try post("run0")
        while answer.status == 202 {
            taken += 1
            try #require(taken < 200, "the disk does not get full")
            answer = try post("run\(taken)")
        }
        #expect(answer.status == 503 && answer.header("retry-after") != nil, "\(answer.text)")
        // Single events fit for longer; then none fits.
        var single = 0
        repeat {
            single += 1
            try #require(single < 1_000, "the disk does not get full")
            answer = try http.post(
                Self.events("single\(single)", 1), app: GameFixture.app, token: game.backend)
        } while answer.status == 202
        #expect(answer.status == 503, "\(answer.text)")
        // Repeated events are accepted, but do not prove that there is space again.
        for _ in 0..<10 {
            let repeated = try post("run0")
            #expect(repeated.status == 202 && repeated["duplicates"]?.integerValue == 100)
            #expect(try admin.request("GET", "/readyz").status == 503)
        }
        #expect(try game.poll(client, since: client.cursor).stale == ["detail character=panda"])
        #expect(gateway.standardErrorTail.contains("the store rejects writes"))

        gateway.kill()
        try gateway.start()
        let last = try gateway.http().post(
            Self.events("run\(taken - 1)"), app: GameFixture.app, token: game.backend)
        #expect(last.status == 202 && last["duplicates"]?.integerValue == 100, "\(last.text)")
        try disk.resize(megabytes: 64)
        #expect(
            try gateway.http().post(
                Self.events("room"), app: GameFixture.app, token: game.backend
            ).status == 202)
        try blockUntil("ready") { try admin.request("GET", "/readyz").status == 200 }
    }

    @Test func `a backup to a full disk names the disk and the room, and leaves nothing`() throws {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        for run in 0..<8 {
            let posted = try gateway.http().post(
                Self.events("run\(run)"), app: GameFixture.app, token: game.backend)
            try #require(posted.status == 202)
        }
        let disk = try SmallDisk(megabytes: 1)
        func run(_ arguments: String...) throws -> String {
            let run = try GatewayProcess.timelinectl(arguments)
            #expect(run.exit == .status(1))
            return run.output
        }
        let refused = try run("backup", "--data", gateway.data, "--to", disk.path + "/copy")
        #expect(
            refused.contains("the disk of \(disk.path) is full")
                && refused.contains(" free, and the backup takes "), "\(refused)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path) == [])
        let place = try GatewayProcess.temporaryDirectory()
        let backup = try GatewayProcess.timelinectl([
            "backup", "--data", gateway.data, "--to", place + "/copy",
        ])
        try #require(backup.exit == .status(0), "\(backup.output)")
        let unrestored = try run(
            "restore", "--from", place + "/copy", "--data", disk.path + "/data")
        #expect(unrestored.contains("the disk of \(disk.path)/data is full"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path) == [])
    }
}

/// Data directories with missing or damaged files: a start refuses them, and the doctor reports
/// it before.
@Suite(.alone) struct LostFilesTests {
    /// Damage to a data directory.
    struct Damage: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// The text that the refusal must contain.
        let named: String
        /// Whether `--new` is the remedy.
        let isLoss: Bool
        let apply: @Sendable (_ data: String) throws -> Void

        init(
            _ description: String, names named: String, isLoss: Bool = true,
            _ apply: @escaping @Sendable (_ data: String) throws -> Void
        ) {
            (testDescription, self.named, self.isLoss, self.apply) = (
                description, named, isLoss, apply
            )
        }
    }

    private static func remove(_ path: String) throws {
        try FileManager.default.removeItem(atPath: path)
    }

    private static func write(_ text: String, _ path: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    }

    private static func key(in ring: String) throws -> String {
        let names = try FileManager.default.contentsOfDirectory(atPath: ring)
        return ring + "/" + (try #require(names.first { $0.hasSuffix(".pem") }))
    }

    private static func sql(_ data: String, _ statement: String) throws {
        let run = try GatewayProcess.run(
            [
                "python3", "-c",
                "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); "
                    + "c.execute(sys.argv[2]); c.commit(); c.close()",
                data + "/store.sqlite", statement,
            ], program: "/usr/bin/env")
        guard run.exit == .status(0) else { throw TestFailure(run.output) }
    }

    static let damages = [
        Damage("no database", names: "store.sqlite") { try remove($0 + "/store.sqlite") },
        Damage("an empty database", names: "store.sqlite") {
            try write("", $0 + "/store.sqlite")
        },
        Damage("no database and no log", names: "store.sqlite") {
            for name in try FileManager.default.contentsOfDirectory(atPath: $0)
            where name.hasPrefix("store.") { try remove($0 + "/" + name) }
        },
        Damage("a log of zeros", names: "store.sqlite") {
            let wal = URL(fileURLWithPath: $0 + "/store.sqlite-wal")
            try Data(count: Data(contentsOf: wal).count).write(to: wal)
        },
        Damage("no keys", names: "keys/") { try remove($0 + "/keys") },
        Damage("no manifest of keys", names: "keys/ring.json") {
            try remove($0 + "/keys/ring.json")
        },
        Damage("no issuer", names: "issuer/") { try remove($0 + "/issuer") },
        Damage("an empty manifest", names: "manifest of the key ring", isLoss: false) {
            try write("", $0 + "/keys/ring.json")
        },
        Damage("a manifest cut short", names: "manifest of the key ring", isLoss: false) {
            let path = $0 + "/issuer/ring.json"
            try write(String(try String(contentsOfFile: path, encoding: .utf8).dropLast(9)), path)
        },
        Damage("a key is gone", names: ".pem", isLoss: false) {
            try remove(key(in: $0 + "/keys"))
        },
        Damage("a key is garbage", names: "private key", isLoss: false) {
            try write("garbage", key(in: $0 + "/issuer"))
        },
        Damage("a hole in the log", names: "gap", isLoss: false) {
            try sql($0, "DELETE FROM log WHERE sequence = 3")
        },
        Damage("a catalog that is none", names: "a value is expected", isLoss: false) {
            try sql($0, "UPDATE catalog SET payload = x'00112233'")
        },
        Damage("a registration that is none", names: "a value is expected", isLoss: false) {
            try sql($0, "UPDATE registration SET payload = x'00112233'")
        },
        Damage("a change that is none", names: "a value is expected", isLoss: false) {
            try sql($0, "UPDATE log SET payload = x'00112233' WHERE sequence = 4")
        },
        Damage("a database of a newer version", names: "newer version", isLoss: false) {
            try sql($0, "INSERT INTO grdb_migrations VALUES ('999 from the future')")
        },
    ]

    @Test(arguments: damages) func `what a start refuses, the doctor sees`(damage: Damage)
        throws
    {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        _ = try game.client("phone", ["panda"])
        try game.change(gateway.http(), ["panda", "owl", "bear"], run: "one")
        func doctor() throws -> (exit: GatewayProcessExit, output: String) {
            try GatewayProcess.timelinectl(["doctor", "--data", gateway.data])
        }
        gateway.kill()
        try damage.apply(gateway.data)
        let sick = try doctor()
        #expect(sick.exit == .status(1), "the doctor sees nothing: \(sick.output)")
        #expect(sick.output.contains(damage.named), "\(sick.output)")
        let arguments = [
            "serve", "--data", gateway.data, "--listen", "127.0.0.1:0", "--admin",
            "127.0.0.1:0",
        ]
        let refused = try GatewayProcess.run(arguments)
        #expect(refused.exit == .status(1), "it started: \(refused.output)")
        #expect(refused.output.contains(damage.named), "\(refused.output)")
        #expect(refused.output.contains("--new") == damage.isLoss)
        guard damage.isLoss else { return }
        let started = try TestProgram(
            GatewayProcess.program(named: "timeline-gateway"), arguments + ["--new"])
        #expect(started.waitForLine(prefix: "ready ") != nil, "\(started.standardErrorTail)")
        #expect(started.standardErrorTail.contains("continuing without a missing part"))
        started.kill()
        // `--new` applied once: from now on the directory is like any other.
        try gateway.start()
        let well = try doctor()
        #expect(!well.output.contains("missing"), "\(well.output)")
    }

    @Test
    func `a new directory starts without a word, in whatever state the first start broke off`()
        throws
    {
        let data = try GatewayProcess.temporaryDirectory()
        try Self.write("", data + "/store.sqlite")
        let gateway = try GatewayProcess(data: data)
        #expect(!gateway.standardErrorTail.contains("missing"))
        let epoch = try GatewayProcess.run(["epoch", "new", "--data", data + "/none"])
        #expect(epoch.exit == .status(1))
        // An empty directory has no log in which an epoch could be opened.
        let empty = try GatewayProcess.temporaryDirectory()
        let refused = try GatewayProcess.run(["epoch", "new", "--data", empty])
        #expect(refused.exit == .status(1) && refused.output.contains("store.sqlite"))
    }

    @Test func `keys whose manifest is lost sign on`() throws {
        let gateway = try GatewayProcess()
        let before = try gateway.http().request("GET", "/.well-known/jwks.json").text
        gateway.terminate()
        try Self.remove(gateway.data + "/keys/ring.json")
        let started = try TestProgram(
            GatewayProcess.program(named: "timeline-gateway"),
            [
                "serve", "--data", gateway.data, "--listen", "127.0.0.1:0", "--admin",
                "127.0.0.1:0", "--new",
            ])
        #expect(started.waitForLine(prefix: "ready ") != nil, "\(started.standardErrorTail)")
        started.kill()
        try gateway.start()
        #expect(try gateway.http().request("GET", "/.well-known/jwks.json").text == before)
    }
}
