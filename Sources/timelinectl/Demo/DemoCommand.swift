import ArgumentParser
import Foundation
import TimelineClient
import TimelineClientHTTP
import WidgetModel

/// Plays the character game against a live gateway and checks that every client is told exactly
/// what it should be.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Show an iPhone, an iPad and a watch being told what became stale.",
        discussion: """
            Needs a gateway in development mode with the character game's catalog, and its program
            to mint tokens with. Exit status 1 if anything did not arrive, or arrived uncalled-for.

            Examples:
              timelinectl demo --url https://127.0.0.1:8443 --ca ./data/certs/ca.pem \\
                --data ./data --gateway .build/release/timeline-gateway
            """)

    @OptionGroup var options: CommonOptions

    @Option(help: "The gateway's data directory.")
    var data: String

    @Option(help: "The gateway's program.")
    var gateway: String

    private static let app = "com.mygame"
    private static let character = "com.mygame.character-detail"
    private static let status = "com.mygame.game-status"
    /// How long a device may take to be told and rebuild.
    private static let patience = Duration.seconds(15)

    func run() async throws {
        let server = GameServer()
        let run = String(UInt32.random(in: .min ... .max), radix: 36)
        let phone = DemoDevice(name: "iPhone", id: "demo-iphone-\(run)")
        let pad = DemoDevice(name: "iPad", id: "demo-ipad-\(run)")
        let watch = DemoDevice(name: "Watch", id: "demo-watch-\(run)")
        let devices = [phone, pad, watch]
        let directory = FileManager.default.temporaryDirectory.appending(path: "demo-\(run)")
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        var runs: [Task<Void, Never>] = []
        for device in devices {
            let client = try client(device, server, directory)
            runs.append(Task { await client.run() })
        }
        defer { for run in runs { run.cancel() } }
        let backend = try connection(scope: "changes:write", sub: "game-server", attributes: [])
        let stage = DemoStage(
            devices: devices, backend: GatewayService(connection: backend, app: Self.app), run: run)
        guard await stage.wait(Self.patience, until: { devices.allSatisfy(\.isConnected) }) else {
            throw fail("the devices did not connect", devices)
        }
        Terminal.print("Three clients are registered, have built every timeline, and listen:")
        for device in devices { Terminal.print(stage.line(device, device.rebuilt)) }
        for device in devices { device.forget() }
        let isRight = try await play(server, stage, phone, pad, watch)
        guard isRight else { throw fail("something did not arrive as it should", devices) }
        Terminal.print(
            "\nEvery client was told exactly what it depends on; every signature verified.")
    }

    private func play(
        _ server: GameServer, _ stage: DemoStage, _ phone: DemoDevice, _ pad: DemoDevice,
        _ watch: DemoDevice
    ) async throws -> Bool {
        var steps: [Bool] = []
        server.set(health: 0.2, of: "Power Panda")
        steps.append(
            try await stage.step(
                "Power Panda's healthLevel changes",
                Change(entity: "CharacterDetail", id: "Power Panda", properties: ["healthLevel"]),
                told: [phone.id: ["character-detail {character: Power Panda}"]],
                rebuilt: [phone.id: ["systemSmall: 🐼 Power Panda, health 20 %"]]))
        server.nextTurn()
        steps.append(
            try await stage.step(
                "account 42 has its turn",
                Change(
                    entity: "GameStatus", properties: ["turn"], attributes: ["account": ["42"]]),
                told: [pad.id: ["game-status"]], rebuilt: [pad.id: ["systemSmall: turn 2"]]))
        server.set(heroType: "Cloud Walker", of: "Unipony")
        steps.append(
            try await stage.step(
                "Unipony's heroType changes, which no widget shows",
                Change(entity: "CharacterDetail", id: "Unipony", properties: ["heroType"]),
                told: [:], rebuilt: [:]))
        server.add(.init(id: "Octo", avatar: "🐙", healthLevel: 0.5, heroType: "Deep Sea Goer"))
        steps.append(
            try await stage.step(
                "a new character, Octo: the watch's recommendations are stale",
                Change(entity: "CharacterDetail", id: "Octo", operation: .insert),
                told: [watch.id: ["recommendations of character-detail"]], rebuilt: [:]))
        steps.append(await recommendationsHold("🐙 Octo", watch, stage))
        server.set(health: 1, of: nil)
        steps.append(
            try await stage.step(
                "a bulk change: everybody is healed",
                Change(entity: "CharacterDetail", properties: ["healthLevel"]),
                told: [phone.id: ["character-detail"], watch.id: ["character-detail"]],
                rebuilt: [
                    phone.id: [
                        "systemMedium: 🦄 Unipony, health 100 %",
                        "systemSmall: 🐼 Power Panda, health 100 %",
                    ], watch.id: ["accessoryRectangular: 🐳 Spouty, health 100 %"],
                ]))
        return steps.allSatisfy { $0 }
    }

    /// Whether the gateway holds a registration of the watch that recommends `item`.
    private func recommendationsHold(
        _ item: String, _ watch: DemoDevice, _ stage: DemoStage
    ) async -> Bool {
        guard
            let connection = try? connection(
                scope: "client", sub: watch.id, attributes: ["account=42"])
        else { return false }
        let service = GatewayService(connection: connection, app: Self.app)
        var items: [String] = []
        let holds = await stage.wait(Self.patience) {
            let answer = try? await service.json("GET", service.base(ofClient: watch.id))
            let set = answer?.value.objectValue?["recommendations"]?.arrayValue?.first
            items = (set?.objectValue?["items"]?.arrayValue ?? [])
                .compactMap { $0.objectValue?["description"]?.stringValue }
            return items.contains(item)
        }
        Terminal.print(
            "    \(holds ? "✓" : "✗") Watch   re-registered: \(items.joined(separator: ", "))")
        return holds
    }

    private func client(
        _ device: DemoDevice, _ server: GameServer, _ directory: URL
    ) throws -> TimelineClient {
        let connection = try connection(
            scope: "client", sub: device.id, attributes: ["account=42"])
        let isWatch = device.name == "Watch"
        let widgets: [WidgetInfo] =
            switch device.name {
            case "iPhone":
                [
                    info(.systemSmall, "Power Panda"), info(.systemMedium, "Unipony"),
                ]
            case "iPad": [WidgetInfo(kind: Self.status, family: .systemSmall)]
            default: [info(.accessoryRectangular, "Spouty")]
            }
        var declared: [any WidgetConfiguration] = []
        if device.name == "iPad" {
            declared.append(
                StaticConfiguration(kind: Self.status, provider: GameStatusProvider(server: server))
            )
        } else {
            declared.append(
                AppIntentConfiguration(
                    kind: Self.character, intent: SelectCharacterIntent.self,
                    provider: CharacterDetailProvider(server: server, recommends: isWatch)))
        }
        let platforms = ["iPhone": "iOS", "iPad": "iPadOS", "Watch": "watchOS"]
        guard
            let configuration = TimelineClientConfiguration(
                app: Self.app, client: device.id, platform: platforms[device.name] ?? "iOS",
                osVersion: OSVersion("26.1"), widgets: widgets,
                observer: { device.observe($0) })
        else { throw ValidationError("the demonstration has a bad client id") }
        return TimelineClient(
            configuration: configuration, widgets: try WidgetRuntime(declared),
            connection: connection,
            verifier: PublishedKeyVerifier(connection: connection, app: Self.app),
            archive: ArchiveFile(path: directory.appending(path: device.id).path))
    }

    private func info(_ family: WidgetFamily, _ character: String) -> WidgetInfo {
        WidgetInfo(
            kind: Self.character, family: family,
            intent: SelectCharacterIntent(character: character))
    }

    /// A connection with a token of the gateway's own issuer.
    private func connection(
        scope: String, sub: String, attributes: [String]
    ) throws -> CurlConnection {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: gateway)
        process.arguments =
            ["token", "--data", data, "--app", Self.app, "--scope", scope, "--sub", sub]
            + attributes.flatMap { ["--attribute", $0] }
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw ValidationError("\(gateway) token failed; is \(data) its data directory?")
        }
        var options = options
        options.token = String(decoding: output, as: UTF8.self)
        return try options.connection()
    }

    private func fail(_ reason: String, _ devices: [DemoDevice]) -> ExitCode {
        Terminal.complain("\ntimelinectl demo: \(reason)")
        for device in devices {
            for failure in device.failures { Terminal.complain("  \(device.name): \(failure)") }
        }
        return ExitStatus.refused
    }
}
