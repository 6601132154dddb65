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
