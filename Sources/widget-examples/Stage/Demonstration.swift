import Foundation
import TimelineRuntime

/// A demonstration of the character game from its first launch: a backend, an iPhone, an iPad and a
/// watch.
struct Demonstration {
    private let access: GatewayAccess
    private let server: GameServer
    private let phone: Device
    private let pad: Device
    private let watch: Device
    private let print: @Sendable (String) -> Void

    /// - Parameter print: Prints a line.
    init(access: GatewayAccess, print: @escaping @Sendable (String) -> Void) throws {
        self.access = access
        self.print = print
        let server = GameServer { try await access.post($0) }
        self.server = server
        // The client names are different in each run, so that runs do not share clients.
        let run = String(UInt32.random(in: .min ... .max), radix: 36)
        func device(
            _ name: String, _ platform: WidgetDevice.Platform, _ placements: [Device.Placement]
        ) throws -> Device {
            let installation = Installation(
                api: GameAPI(server: server, account: Self.account), store: GameStore())
            return try Device(
                name, platform, run: run, installation: installation, placements: placements)
        }
        let characters = server.characters
        func character(
            _ name: String, _ family: WidgetFamily, _ index: Int,
            at location: WidgetLocation = .homeScreen
        ) -> Device.Placement {
            Device.Placement(
                name: name,
                widget: WidgetInfo(
                    kind: CharacterWidget.kind, family: family,
                    intent: ChooseCharacter(character: characters[index])),
                location: location)
        }
        func other(_ name: String, _ kind: String, _ family: WidgetFamily) -> Device.Placement {
            Device.Placement(
                name: name, widget: WidgetInfo(kind: kind, family: family), location: .homeScreen)
        }
        phone = try device(
            "iPhone", .iOS,
            [
                character("small", .systemSmall, 0), character("large", .systemLarge, 2),
                other("quests", QuestsWidget.kind, .systemMedium),
            ])
        pad = try device(
            "iPad", .iPadOS,
            [
                other("turn", TurnWidget.kind, .systemSmall),
                other("quests", QuestsWidget.kind, .systemSmall),
            ])
        watch = try device(
            "Watch", .watchOS, [character("stack", .accessoryRectangular, 1, at: .smartStack)])
    }

    /// The account of all devices.
    private static let account = "42"

    private var devices: [Device] { [phone, pad, watch] }

    /// Runs the demonstration, prints every step, and removes the devices from the gateway.
    ///
    /// - Parameters:
    ///   - catalog: The catalog with the dependencies of the widgets, in YAML.
    ///   - directory: The directory for the devices' archives.
    ///   - patience: The time limit for a device to receive a notification and rebuild.
    /// - Returns: Whether every device received the expected notifications, and shows the expected
    ///   content.
    func play(catalog: [UInt8], directory: URL, patience: Duration) async throws -> Bool {
        try await access.putCatalog(catalog)
        var stage = Stage(devices: devices, patience: patience, print: print)
        let result: Result<Void, any Error>
        do {
            try await gallery(&stage)
            try await start(&stage, directory)
            try await changes(&stage)
            try await choices(&stage)
            try await interactions(&stage)
            try await battle(&stage)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        if !stage.isRight {
            for device in devices {
                for failure in device.failures { print("  \(device.name): \(failure)") }
            }
        }
        for device in devices {
            await device.stop()
            await access.remove(client: device.id)
        }
        try result.get()
        return stage.isRight
    }

    // MARK: Act by act

    private func gallery(_ stage: inout Stage) async throws {
        print("A person looks through the gallery:")
        let character = try await phone.preview(ofKind: CharacterWidget.kind, in: .systemSmall)
        stage.check(character == "🙂 Your hero · health 75 %", "Character: \(character)")
        let turn = try await phone.preview(ofKind: TurnWidget.kind, in: .systemSmall)
        stage.check(turn == "[hourglass] · No game", "Turn: \(turn)")
        let quests = try await phone.preview(ofKind: QuestsWidget.kind, in: .systemMedium)
        stage.check(quests == "☐ Something to do", "Quests: \(quests)")
        let choices = try await phone.choices(ofKind: CharacterWidget.kind)
        stage.check(
            choices == ["🦔 Bramble", "🐟 Marlin", "🦊 Juniper"],
            "Character, to choose from: \(choices.joined(separator: ", "))")
    }

    private func start(_ stage: inout Stage, _ directory: URL) async throws {
        let open = "☐ Gather berries · ☐ Mend the bridge"
        let before = stage
        try await stage.step(
            "The devices register, build every timeline and open a stream",
            .init(
                // A registration without a cursor causes no notification about content that was
                // just built.
                shows: [
                    "iPhone": [
                        "small": "🦔 Bramble · health 25 %",
                        "large": "🦊 Juniper · health 85 % · (Heal everybody)", "quests": open,
                    ], "iPad": ["turn": "[hourglass] · Turn 1", "quests": open],
                    "Watch": ["stack": "🐟 Marlin · health 60 %"],
                ])
        ) {
            // The last one to begin is the device that Live Activities of this process are on.
            for device in devices.reversed() {
                let connection = try await access.connection(
                    client: device.id, account: Self.account)
                try device.start(
                    connection, archive: directory.appending(path: device.name.lowercased()).path)
                _ = await before.wait { device.isConnected }
            }
        }
    }

    private func changes(_ stage: inout Stage) async throws {
        try await stage.step(
            "Bramble is hurt",
            .init(
                told: ["iPhone": ["character-detail {character: bramble}"]],
                shows: ["iPhone": ["small": "🦔 Bramble · health 20 %"]])
        ) { try await server.setHealth(0.2, of: "bramble") }
        try await stage.step(
            "The account's game has a new turn",
            .init(
                told: ["iPad": ["game-status"]], shows: ["iPad": ["turn": "[hourglass] · Turn 2"]])
        ) { try await server.nextTurn(of: Self.account) }
        try await stage.step("Another account's game has a new turn", .init()) {
            try await server.nextTurn(of: "43")
        }
        try await stage.step("Juniper becomes a poet, which no widget shows", .init()) {
            try await server.setRole("Poet", of: "juniper")
        }
        try await stage.step(
            "Inka joins the game: the watch's recommendations are stale",
            .init(told: ["Watch": ["recommendations of character-detail"]])
        ) {
            try await server.add(
                GameCharacter(id: "inka", name: "Inka", avatar: "🐙", health: 0.5, role: "Cook"))
        }
        var items: [String] = []
        _ = await stage.wait {
            items =
                (try? await access.recommendations(ofKind: CharacterWidget.kind, by: watch.id))
                ?? []
            return items.contains("🐙 Inka")
        }
        stage.check(
            items == ["🦔 Bramble", "🐟 Marlin", "🦊 Juniper", "🐙 Inka"],
            "Watch   offers: \(items.joined(separator: ", "))")
    }

    private func choices(_ stage: inout Stage) async throws {
        let marlin = server.characters[1]
        try await stage.step(
            "A person chooses Marlin for the small widget on the iPhone",
            .init(shows: ["iPhone": ["small": "🐟 Marlin · health 60 %"]])
        ) { await phone.edit("small", ChooseCharacter(character: marlin)) }
        try await stage.step("Bramble, no longer shown by any widget, is hurt again", .init()) {
            try await server.setHealth(0.1, of: "bramble")
        }
        var opened: WidgetActivity?
        try await stage.step("A person taps it: the app opens at the widget's character", .init()) {
            opened = try await phone.open("small")
        }
        let chosen = opened?.widgetConfigurationIntent(of: ChooseCharacter.self)
        let url = opened?.url?.absoluteString ?? "nothing"
        stage.check(
            url == "game://characters/marlin" && chosen?.character.name == "Marlin",
            "iPhone  opens the app at \(url), for \(chosen?.character.name ?? "nobody")")
        let told: Set<String> = ["character-detail {character: marlin}"]
        try await stage.step(
            "Marlin is hurt",
            .init(
                told: ["iPhone": told, "Watch": told],
                shows: [
                    "iPhone": ["small": "🐟 Marlin · health 45 %"],
                    "Watch": ["stack": "🐟 Marlin · health 45 %"],
                ])
        ) { try await server.setHealth(0.45, of: "marlin") }
    }

    private func interactions(_ stage: inout Stage) async throws {
        let berries = "☑ Gather berries · ☐ Mend the bridge"
        let both = "☑ Gather berries · ☑ Mend the bridge"
        let quests: [String: Set<String>] = ["iPhone": ["quests"], "iPad": ["quests"]]
        var atOnce = ""
        try await stage.step(
            "A person marks a quest on the iPhone: the iPad is notified",
            .init(
                told: quests, shows: ["iPhone": ["quests": berries], "iPad": ["quests": berries]])
        ) { atOnce = try await phone.tap("Gather berries", on: "quests") }
        stage.check(atOnce == berries, "iPhone  showed at once: \(atOnce)")
        server.setTakesChanges(false)
        try await stage.step(
            "The server rejects the next one: the toggle reverts",
            .init(shows: ["iPhone": ["quests": "\(berries) · not saved, try again"]])
        ) { atOnce = try await phone.tap("Mend the bridge", on: "quests") }
        stage.check(atOnce == both, "iPhone  showed at once: \(atOnce)")
        server.setTakesChanges(true)
        await phone.set(lock: .lockedWithPasscode)
        var refusal: InteractionRefusal?
        try await stage.step("On a locked iPhone buttons and toggles do nothing", .init()) {
            do {
                _ = try await phone.tap("Heal everybody", on: "large")
            } catch let error as InteractionRefusal {
                refusal = error
            }
        }
        stage.check(refusal == .locked, "iPhone  says: \(refusal?.description ?? "nothing")")
        await phone.set(lock: .unlocked)
        try await stage.step(
            "Unlocked, the quest is marked again",
            .init(told: quests, shows: ["iPhone": ["quests": both], "iPad": ["quests": both]])
        ) { _ = try await phone.tap("Mend the bridge", on: "quests") }
        try await stage.step(
            "The super charge button heals everybody",
            .init(
                told: ["iPhone": ["character-detail"], "Watch": ["character-detail"]],
                shows: [
                    "iPhone": [
                        "small": "🐟 Marlin · health 100 %",
                        "large": "🦊 Juniper · health 100 % · (Heal everybody)",
                    ], "Watch": ["stack": "🐟 Marlin · health 100 %"],
                ])
        ) { _ = try await phone.tap("Heal everybody", on: "large") }
    }

    private func battle(_ stage: inout Stage) async throws {
        let title = "Battle of 🦔 Bramble"
        try await stage.step(
            "A battle begins: the iPhone shows a Live Activity",
            .init(shows: ["iPhone": ["battle": "\(title) · health 100 %"]])
        ) { try phone.startBattle(of: server.characters[0]) }
        var types: [String] = []
        _ = await stage.wait {
            types = (try? await access.activities(of: phone.id)) ?? []
            return !types.isEmpty
        }
        stage.check(
            types == ["BattleAttributes"], "iPhone  registered: \(types.joined(separator: ", "))")
        try await stage.step(
            "Bramble is hit",
            .init(
                told: ["iPhone": ["BattleAttributes"]],
                shows: ["iPhone": ["battle": "\(title) · health 40 %"]])
        ) { try await server.setHealth(0.4, of: "bramble") }
    }
}
