import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// The simulator of `timelinectl`, run as by hand.
@Suite(.alone) struct DeviceTests {
    private static let path = "/v1/apps/\(CharacterGame.app)"

    private static func token(_ gateway: LocalGateway) throws -> String {
        try gateway.token(
            app: CharacterGame.app,
            scope: "catalog:write changes:write clients:write tokens:issue")
    }

    /// Starts a simulation that runs until it is told to stop, and waits until all of its
    /// devices are ready.
    private static func start(
        _ gateway: LocalGateway, catalog: String, _ arguments: String...
    ) throws -> TestProgram {
        try gateway.http().putCatalog(catalog, app: CharacterGame.app, token: token(gateway))
        let devices = try TestProgram(
            GatewayProcess.program(named: "timelinectl"),
            [
                "device", "--url", gateway.url, "--ca", gateway.ca, "--token", token(gateway),
                "--app", CharacterGame.app, "--json", "--devices", "20", "--every", "0.2",
                "--patience", "3600",
            ] + arguments)
        // One line of progress.
        _ = try devices.json(line: 0)
        return devices
    }

    /// Waits until so many timelines were rebuilt for changes.
    private static func wait(_ devices: TestProgram, rebuilds: Int64) throws {
        var line = 0
        while true {
            let progress = try #require(try devices.json(line: line))
            let built = try #require(progress["rebuilt"]?.integerValue)
            let first = try #require(progress["timelines"]?.integerValue)
            if built >= first + rebuilds { return }
            line += 1
        }
    }

    /// Ends a simulation as Ctrl-C does; returns its exit status and its summary.
    private static func end(
        _ devices: TestProgram
    ) throws -> (exit: GatewayProcessExit?, summary: JSONObject) {
        devices.signal(SIGTERM)
        let exit = devices.waitForExit()
        let line = devices.waitForOutput()?.split(separator: "\n").last ?? ""
        let value = try JSONValue(parsing: Array(line.utf8))
        return (exit, try #require(value.objectValue?["summary"]?.objectValue))
    }

    /// While a change waits in any window, cursors stay below it, even those of devices that
    /// rebuild for another change; the gateway nevertheless counts each rebuild.
    @Test func `the gateway counts what the devices count, and none is left behind`() throws {
        let gateway = try LocalGateway()
        let kinds = [("fast", "0ms"), ("medium", "300ms"), ("slow", "1500ms")].map {
            """
              - kind: \($0.0)
                configuration: appIntent
                intent: Choose
                families: [systemSmall]
                collapse: \($0.1)
                dependsOn: [{ entity: Item, match: { id: $item } }]

            """
        }
        let catalog = """
            app: \(CharacterGame.app)
            entities: { Item: {} }
            intents: { Choose: { parameters: [{ name: item, type: String }] } }
            widgets:

            """
        let devices = try Self.start(
            gateway, catalog: catalog + kinds.joined(), "--items", "12", "--post", "20",
            "--build-ms", "20", "--admin", gateway.admin)
        try Self.wait(devices, rebuilds: 100)
        let (exit, summary) = try Self.end(devices)
        #expect(exit == .status(0), "\(devices.output)")
        #expect(summary["devices"] == 20 && summary["connected"] == 20)
        #expect(summary["lost"] == 0 && summary["stray"] == 0 && summary["unverified"] == 0)
        let rebuilds = try #require(summary["rebuiltForChanges"]?.integerValue)
        let measured = try #require(summary["gateway"]?.objectValue)
        #expect(measured["rebuilds"]?.integerValue == rebuilds, "\(summary)")
        let left = try gateway.http().request(
            "GET", Self.path + "/clients", token: Self.token(gateway))
        #expect(left["clients"] == [], "\(left.text)")
    }

    /// Two programs that post disturb each other: neither knows of the other's changes.
    @Test func `a reload that nothing asked for is a failure`() throws {
        let gateway = try LocalGateway()
        let devices = try Self.start(
            gateway, catalog: CharacterGame.catalogYAML, "--items", "1", "--post", "0.001")
        let post = try gateway.http().post(
            [event(source: "other", id: "1", entity: "CharacterDetail", key: "item-1")],
            app: CharacterGame.app, token: Self.token(gateway))
        try #require(post.status == 202, "\(post.text)")
        try Self.wait(devices, rebuilds: 1)
        #expect(try Self.end(devices).exit == .status(5), "\(devices.output)")
    }

    @Test func `what is wrong from the start is said`() throws {
        let gateway = try LocalGateway()
        func run(_ url: String) throws -> TestProgram {
            try TestProgram(
                GatewayProcess.program(named: "timelinectl"),
                [
                    "device", "--devices", "1", "--url", url, "--ca", gateway.ca, "--token",
                    Self.token(gateway), "--app", CharacterGame.app,
                ])
        }
        let unknown = try run(gateway.url)
        #expect(unknown.waitForExit() == .status(1))
        #expect(unknown.standardErrorTail.contains("404 The app has no catalog"))
        #expect(try run("https://127.0.0.1:1").waitForExit() == .status(3))
    }
}

/// `timelinectl canary` against a real gateway.
@Suite(.alone) struct CanaryTests {
    private static func arguments(
        _ gateway: LocalGateway, _ more: [String], scope: String? = nil
    ) throws -> [String] {
        let token = try gateway.token(
            app: GameFixture.app, scope: scope ?? "catalog:write changes:write client",
            sub: "timeline-canary")
        return [
            "canary", "--url", gateway.url, "--ca", gateway.ca, "--token", token, "--app",
            GameFixture.app,
        ] + more
    }

    private static func run(
        _ gateway: LocalGateway, _ more: String..., scope: String? = nil
    ) throws -> (exit: GatewayProcessExit, output: String) {
        try GatewayProcess.timelinectl(arguments(gateway, more, scope: scope))
    }

    @Test func `one round follows a change that concerns nobody else`() throws {
        let gateway = try LocalGateway()
        let game = try GameFixture(gateway)
        let other = try game.client("phone", ["panda"])
        let round = try Self.run(gateway, "--once", "--patience", "3600", "--json")
        #expect(round.exit == .status(0), "\(round.output)")
        let answer = try JSONValue(parsing: Array(round.output.utf8)).objectValue
        #expect(answer?["outcome"] == "confirmed" && answer?["sequence"] == 2)
        #expect(try game.poll(other, since: other.cursor).stale == [])
        let clients = try gateway.http().request(
            "GET", "/v1/apps/\(GameFixture.app)/clients", token: game.backend)
        #expect(clients["clients"]?.arrayValue?.count == 1, "the canary stayed")
        let weak = try Self.run(gateway, "--once", scope: "changes:write")
        #expect(weak.exit == .status(1), "\(weak.output)")
        let unknown = try Self.run(gateway, "--once", "--kind", "other")
        #expect(unknown.exit == .status(2) && unknown.output.contains("no kind other"))
        gateway.terminate()
        #expect(try Self.run(gateway, "--once").exit == .status(3))
    }

    @Test func `rounds are counted, until the gateway is gone`() throws {
        let gateway = try LocalGateway()
        _ = try GameFixture(gateway)
        let file = gateway.data + "/canary.prom"
        let canary = try TestProgram(
            GatewayProcess.program(named: "timelinectl"),
            Self.arguments(
                gateway,
                ["--interval", "1", "--patience", "3600", "--textfile", file, "--json"]))
        #expect(try canary.json(line: 0)?["outcome"] == "confirmed")
        gateway.terminate()
        let prefix = "timeline_canary_rounds_total{app=\"\(GameFixture.app)\",outcome="
        var page = MetricsPage("")
        try blockUntil("failed", details: { canary.output }) {
            page = MetricsPage((try? String(contentsOfFile: file, encoding: .utf8)) ?? "")
            return page[prefix + "\"failed\"}"] ?? 0 >= 1
        }
        canary.kill()
        #expect(page[prefix + "\"confirmed\"}"] ?? 0 >= 1)
        #expect(page["timeline_canary_up{app=\"\(GameFixture.app)\"}"] == 0)
        let (exit, output) = try GatewayProcess.run(
            ["bash", "-c", "promtool check metrics <\"$0\"", file], program: "/usr/bin/env")
        #expect(exit == .status(0), "\(output)")
    }

    @Test func `a catalog in which every change concerns others too is refused`() throws {
        let gateway = try LocalGateway()
        let game = try GameFixture(gateway)
        let put = try game.put(
            """
            app: \(GameFixture.app)
            entities: { Character: {} }
            intents: { One: { parameters: [{ name: list, type: "[Character]" }] } }
            widgets:
              - kind: all
                configuration: static
                families: [systemSmall]
                dependsOn: [{ entity: Character }]
              - kind: own
                configuration: appIntent
                intent: One
                families: [systemSmall]
                dependsOn: [{ entity: Character, match: { id: $client.account } }]
            """)
        try #require(put == 200)
        let refused = try Self.run(gateway, "--once")
        #expect(refused.exit == .status(2))
        #expect(refused.output.contains("affect a single widget"), "\(refused.output)")
    }
}

/// The simulated push service of `timelinectl`, run and queried with curl as a team would do
/// it.
@Suite(.alone) struct DevAPNsTests {
    private func timelinectl() throws -> String {
        try GatewayProcess.program(named: "timelinectl")
    }

    private func curl(
        _ service: JSONObject, token: String, device: String,
        topic: String = "com.mygame.push-type.widgets"
    ) throws -> String {
        let url = try #require(service["ready"]?.stringValue)
        let ca = try #require(service["ca"]?.stringValue)
        let (exit, output) = try GatewayProcess.run(
            [
                "-sS", "--http2", "--cacert", ca, "-H", "authorization: bearer \(token)", "-H",
                "apns-push-type: widgets", "-H", "apns-topic: \(topic)", "-d",
                #"{"aps":{"content-changed":true}}"#, "-w", " %{http_code} %{http_version}",
                "\(url)/3/device/\(device)",
            ], program: "/usr/bin/curl")
        #expect(exit == .status(0), "\(output)")
        return output
    }

    @Test func curlPushesToIt() throws {
        // A directory that does not exist, as where a newcomer tries it.
        let data = try GatewayProcess.temporaryDirectory() + "/new/apns"
        let service = try TestProgram(
            try timelinectl(),
            [
                "dev", "apns", "--data", data, "--listen", "127.0.0.1:0", "--json", "--app",
                "com.mygame", "--answer", "0a0b=410,200", "--count", "4",
            ])
        let ready = try #require(try service.json(line: 0))
        let (exit, output) = try GatewayProcess.run(
            ["dev", "apns-token", "--data", data], program: timelinectl())
        #expect(exit == .status(0))
        let token = output.trimmingCharacters(in: .whitespacesAndNewlines)
        let device = "0123456789abcdef0123456789abcdef"
        #expect(try curl(ready, token: token, device: device) == " 200 2")
        let gone = try curl(ready, token: token, device: "0a0b")
        #expect(gone.hasPrefix(#"{"reason":"Unregistered","timestamp":"#))
        #expect(gone.hasSuffix("} 410 2"))
        #expect(try curl(ready, token: token, device: "0a0b") == " 200 2")
        let other = try curl(
            ready, token: token, device: device, topic: "com.other.push-type.widgets")
        #expect(other == #"{"reason":"TopicDisallowed"} 400 2"#)
        #expect(service.waitForExit() == .status(0))
        let first = try #require(try service.json(line: 1))
        #expect(first["token"] == "01234567…" && first["status"] == 200)
        #expect(first["topic"] == "com.mygame.push-type.widgets")
        #expect(try service.json(line: 2)?["reason"] == "Unregistered")
        let summary = try #require(try service.json(line: 5)?["summary"]?.objectValue)
        #expect(summary["requests"] == 4 && summary["taken"] == 2)
        #expect(summary["providerTokens"] == 1)
        // No secret is printed.
        let all = service.output
        #expect(!all.contains(token) && !all.contains(device))
    }

    @Test func faultsAreAskedForByChance() throws {
        let data = try GatewayProcess.temporaryDirectory()
        let service = try TestProgram(
            try timelinectl(),
            [
                "dev", "apns", "--data", data, "--listen", "127.0.0.1:0", "--json", "--fault",
                "100%=TooManyRequests", "--count", "1",
            ])
        let ready = try #require(try service.json(line: 0))
        let (_, output) = try GatewayProcess.run(
            ["dev", "apns-token", "--data", data], program: timelinectl())
        let token = output.trimmingCharacters(in: .whitespacesAndNewlines)
        #expect(
            try curl(ready, token: token, device: "0a0b")
                == #"{"reason":"TooManyRequests"} 429 2"#)
        #expect(service.waitForExit() == .status(0))
    }

    @Test func whatIsWrongOnTheCommandLineIsSaid() throws {
        for arguments in [
            ["--fault", "5"], ["--fault", "101%"], ["--fault", "5%=never"], ["--answer", "0a"],
            ["--answer", "0a=999"], ["--listen", "nowhere"], ["--count", "0"],
            ["--certificate", "x.pem"], ["--fault", "60%", "--fault", "60%=410"],
        ] {
            let (exit, output) = try GatewayProcess.run(
                ["dev", "apns"] + arguments, program: timelinectl())
            #expect(exit == .status(2), "\(arguments): \(output)")
        }
    }
}
