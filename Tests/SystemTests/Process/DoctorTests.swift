import APNsSimulator
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// `timelinectl doctor` with real gateways, healthy and not.
@Suite(.alone) struct DoctorTests {
    private static func run(
        _ arguments: String...
    ) throws -> (exit: GatewayProcessExit, output: String) {
        try GatewayProcess.timelinectl(["doctor"] + arguments)
    }

    /// Returns the findings by subject, each as "level what".
    private static func findings(_ arguments: String...) throws -> [String: [String]] {
        let run = try GatewayProcess.timelinectl(["doctor", "--json"] + arguments)
        let line = run.output.split(separator: "\n").first ?? ""
        let answer = try JSONValue(parsing: Array(line.utf8)).objectValue ?? [:]
        #expect(run.exit == .status(answer["ok"] == true ? 0 : 1))
        var findings: [String: [String]] = [:]
        for finding in answer["findings"]?.arrayValue ?? [] {
            let finding = finding.objectValue ?? [:]
            let (level, what) = (finding["level"]?.stringValue, finding["what"]?.stringValue)
            findings[finding["subject"]?.stringValue ?? "", default: []].append(
                "\(level ?? "") \(what ?? "")")
            // Every finding except `ok` has a remedy.
            #expect((level == "ok") == (finding["remedy"] == ""), "\(finding)")
        }
        return findings
    }

    private static func ports(_ watched: WatchedGateway) throws -> [String] {
        [
            "listen: 127.0.0.1:\(try GatewayProcess.freePort())",
            "admin: 127.0.0.1:\(watched.port)",
        ]
    }

    @Test func `a gateway that is well is found well, and left as it was`() throws {
        let watched = try WatchedGateway()
        let game = try GameFixture(watched.gateway)
        let config = watched.folder + "/gateway.yaml"
        try WatchedGateway.write(
            try Self.ports(watched) + ["data: \(watched.folder)"], in: watched.folder)
        try Data(
            String(contentsOfFile: config, encoding: .utf8)
                .replacing(
                    "publicURL: https://gateway.test", with: "publicURL: https://localhost"
                )
                .utf8
        ).write(to: URL(fileURLWithPath: config))
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o700], ofItemAtPath: watched.folder)
        let run = try Self.run("--config", config)
        #expect(run.exit == .status(0), "\(run.output)")
        let found = try Self.findings("--config", config)
        #expect(found["configuration"] == ["ok valid"])
        #expect(found["certificate"]?.first?.hasPrefix("ok expires 2") == true)
        #expect(found["certificate"]?.count == 1)
        #expect(found["data directory"]?.first?.hasPrefix("ok ") == true)
        #expect(found["disk"]?.isEmpty == false && found["file limit"]?.isEmpty == false)
        #expect(found["database"] == ["ok intact: log up to 1, 0 clients of 1 apps"])
        #expect(found["listen"]?.first?.hasSuffix("is free") == true)
        #expect(
            found["admin"] == [
                "ok 127.0.0.1:\(watched.port) is in use; the gateway is process "
                    + "\(watched.gateway.pid)"
            ])
        // The gateway kept running, and still works.
        _ = try game.client("phone", ["panda"])
    }

    @Test func `what is wrong is named, with what to do`() throws {
        let watched = try WatchedGateway(days: 10)
        let folder = watched.folder
        watched.gateway.terminate()
        let taken = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(taken) }
        let address = sockaddr_in(loopback: 1, port: watched.port)
        let isBound = address.withSockaddr { bind(taken, $0, $1) == 0 }
        try #require(isBound && listen(taken, 1) == 0)
        let pushed = try TestCertificate(
            pushesFor: GameFixture.app, ca: folder + "/certs/ca.pem", days: 3)
        try WatchedGateway.write(
            try Self.ports(watched) + [
                "data: \(folder)", "push: { apnsProduction: 127.0.0.1:1 }",
                "apns: [{ app: \(GameFixture.app), environment: production, certificate: "
                    + "\(pushed.certificate), certificateKey: \(pushed.key) }]",
            ], in: folder)
        let ring = folder + "/keys/ring.json"
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: ring)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder)
        let database = try #require(FileHandle(forUpdatingAtPath: folder + "/store.sqlite"))
        try database.seek(toOffset: 3 * 4096)
        try database.write(contentsOf: Data(repeating: 0xA5, count: 4096))
        try database.close()
        let found = try Self.findings("--config", folder + "/gateway.yaml")
        func expect(_ subject: String, _ start: String, _ part: String) {
            #expect(
                found[subject]?.contains { $0.hasPrefix(start) && $0.contains(part) } == true,
                "\(subject): \(found[subject] ?? [])")
        }
        expect("certificate", "warn ", "in 9 d")
        expect("certificate", "fail ", "is not valid for gateway.test")
        expect("APNs certificate of \(GameFixture.app)", "warn ", "in 2 d")
        expect("data directory", "warn ", "has mode 755")
        expect("data directory", "fail ", "keys/ring.json")
        expect("database", "fail is damaged", "integrity")
        expect("admin", "fail ", "cannot be opened")
        expect("DNS", "warn gateway.test", "does not resolve")
        try WatchedGateway.write(["log: { level: lots }", "dataa: x"], in: folder)
        let wrong = try Self.findings("--config", folder + "/gateway.yaml", "--data", folder)
        #expect(wrong["configuration"]?.count == 2, "\(wrong)")
        #expect(try Self.run().exit == .status(2))
    }

    @Test func `a gateway is looked at from outside`() throws {
        let gateway = try LocalGateway()
        let found = try Self.findings(
            "--url", gateway.url, "--ca", gateway.ca, "--admin", gateway.admin)
        #expect(found["gateway"]?.first?.hasPrefix("ok ") == true)
        #expect(found["published keys"] == ["ok 1, all usable for signing"])
        #expect(found["clock"] == ["ok agrees with the local clock"])
        #expect(found["readiness"] == ["ok ready"])
        // The system does not trust this authority.
        let strange = try Self.findings("--url", gateway.url)
        #expect(strange["gateway"]?.first?.hasPrefix("fail ") == true)
        gateway.terminate()
        let gone = try Self.findings(
            "--url", gateway.url, "--ca", gateway.ca, "--admin", gateway.admin)
        #expect(gone["gateway"]?.first?.hasPrefix("fail ") == true)
        #expect(gone["admin port"]?.first?.hasPrefix("fail ") == true)
    }

    @Test func `a push service is asked, and nothing is pushed`() async throws {
        let world = try PushFixture()
        let config = world.gateway.data + "/gateway.yaml"
        func apns() throws -> [String] {
            try Self.findings("--config", config, "--data", world.gateway.data)["APNs"] ?? []
        }
        let answered = try apns()
        #expect(answered.count == 1 && answered[0].hasPrefix("ok 127.0.0.1:"), "\(answered)")
        #expect(world.apns.record.taken == 0)
        await world.stop()
        let silent = try apns()
        #expect(silent.count == 1 && silent[0].hasPrefix("warn 127.0.0.1:"), "\(silent)")
    }
}
