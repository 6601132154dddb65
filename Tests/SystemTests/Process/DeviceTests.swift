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
