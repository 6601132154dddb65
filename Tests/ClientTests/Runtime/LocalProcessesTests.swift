import ArgumentParser
import Foundation
import GatewayTestSupport
import Synchronization
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews
@testable import timelinectl

private struct RoomIntent: ControlConfigurationIntent {
    static let title: LocalizedStringResource = "Room"

    @Parameter(title: "Room") var room: String?
}

private struct RoomProvider: AppIntentControlValueProvider {
    func previewValue(configuration: RoomIntent) -> String { "" }
    func currentValue(configuration: RoomIntent) throws -> String {
        guard let room = configuration.room else { throw TestFailure("no room") }
        return room
    }
}

private struct TaskLabel: View {
    @Environment(\.levelOfDetail) private var detail
    var body: some View { Text(detail == .simplified ? "far" : "task") }
}

/// A running extension, reached through the socket in its archive as other processes reach it.
@Suite(.timeLimit(.minutes(30))) struct LocalProcessesTests {
    private let name = UUID().uuidString
    private let info = WidgetInfo(kind: "tasks", family: .systemSmall)
    private let gateway: ScriptedGateway
    private let archive = ClientArchive(
        directory: NSTemporaryDirectory() + "local-\(UUID().uuidString)")
    private var tasks: TapList { .named(name) }
    private var call: IntentCall { IntentCall(TapIntent(name)) }

    init() throws { gateway = try ScriptedGateway() }

    /// The extension declares no intents: those of its controls are found when they are drawn.
    private func client(
        kind: String = "tasks", archive: ClientArchive? = nil, sharesClient: Bool = false,
        controls: [any ControlWidgetConfiguration] = [], platform: String = "iOS"
    ) throws -> TimelineClient {
        var configuration = try #require(
            TimelineClientConfiguration(
                app: "com.mygame", client: "device-1", platform: platform,
                widgets: [WidgetInfo(kind: kind, family: .systemSmall)]))
        configuration.acceptsRequests = true
        configuration.sharesClient = sharesClient
        var settings = configuration.engineSettings
        settings.retryBase = .milliseconds(1)
        (settings.buildRetryBase, settings.buildRetryCap) = (.seconds(3_600), .seconds(3_600))
        settings.retryCap = .milliseconds(5)
        let archive = archive ?? self.archive
        return TimelineClient(
            configuration: configuration,
            widgets: try WidgetDeclarations(
                [
                    StaticConfiguration(kind: kind, provider: ListProvider(list: name)) { entry in
                        if !entry.list.isEmpty {
                            Toggle(isOn: entry.isDone, intent: TapIntent(entry.list)) {
                                TaskLabel()
                            }
                            Button("In the app", intent: AppTapIntent(entry.list))
                        }
                    }
                    .disfavoredLocations([.homeScreen], for: [.systemMedium])
                    .promptsForUserConfiguration()
                    .supportedMountingStyles([.elevated])
                    .widgetTexture(.paper)
                ], controls: controls),
            connection: gateway,
            verifier: PublishedKeyVerifier(connection: gateway, app: "com.mygame"),
            archive: archive, app: AppConnection(archive: archive), settings: settings)
    }

    private func running(
        _ client: TimelineClient, _ body: (ExtensionConnection) async throws -> Void
    ) async throws {
        let run = Task { await client.run() }
        defer { run.cancel() }
        await gateway.wait { $0.isBuilt }
        let connection = ExtensionConnection(archive: archive)
        try await eventually("it answers") {
            (try? await connection.ask(.placedWidgets)) != nil
        }
        try await body(connection)
        run.cancel()
        await run.value
    }

    private static func registered(_ state: ScriptedGateway.State) -> [String] {
        (state.inForce.objectValue?["widgets"]?.arrayValue ?? [])
            .compactMap { $0.objectValue?["kind"]?.stringValue }.sorted()
    }

    private func performed() -> Int { tasks.state.withLock { $0.performed } }

    /// Returns the texts that another process draws, from the archive or from a preview's file.
    private func shown(in path: String? = nil, _ options: String...) throws -> [String] {
        try ShowCommand.parse([path ?? archive.directory] + options).reports()
            .flatMap { $0.node?.texts ?? [] }
    }

    @Test func theSocketsAreForTheirOwnersAlone() async throws {
        try await running(try client()) { connection in
            let mode = try FileManager.default.attributesOfItem(atPath: archive.extensionSocket)[
                .posixPermissions]
            #expect(mode as? Int == 0o600, "others could use the widgets")
            await #expect(throws: ProcessRefusal(description: "\(InteractionRefusal.notShown)")) {
                try await connection.interact(
                    with: IntentCall(TapIntent("another's")), of: info, in: info.environment())
            }
            let intents = try WidgetDeclarations([])
            let app = try AppListener(archive: archive, intents: intents) { _ in }
            #expect(throws: ClientArchive.Failure.self, "the running app would lose its socket") {
                try AppListener(archive: archive, intents: intents) { _ in }
            }
            withExtendedLifetime(app) {}
        }
    }

    @Test func theAppReadsTheConfigurationOfTheTappedWidget() async throws {
        let widget = character("Unipony")
        let chosen = Mutex<String?>(nil)
        let app = try AppListener(
            archive: archive,
            intents: WidgetDeclarations([
                AppIntentConfiguration(
                    kind: widget.kind, intent: SelectCharacterIntent.self,
                    provider: CharacterProvider())
            ])
        ) { activity in
            let intent = activity.widgetConfigurationIntent(of: SelectCharacterIntent.self)
            chosen.withLock { $0 = intent?.character }
        }
        try await AppConnection(archive: archive).open(WidgetActivity(widget: widget, url: nil))
        #expect(chosen.withLock { $0 } == "Unipony")
        withExtendedLifetime(app) {}
    }

    @Test func placedControlsAreDrawnAtTheStartAndWhenANotificationNamesThem() async throws {
        let control = StaticControlConfiguration(
            kind: "switch", provider: SwitchProvider(list: name)
        ) { [name] isDone in
            ControlWidgetButton(action: TapIntent(name)) { Text(isDone ? "done" : "open") }
        }
        try archive.save(controls: [PlacedControl(kind: "switch", id: "c-1")])
        let client = try client(controls: [control])
        try await running(client) { connection in
            func isShown(_ text: String) async throws -> Bool {
                let shown = try await connection.ask(.controls).arrayValue?.first?.objectValue
                return shown?["content"].flatMap { WidgetNode($0) }?.texts == [text]
            }
            try await eventually("drawn") { try await isShown("open") }
            tasks.state.withLock { $0.isDone = true }
            var told = claims(sequence: 11)
            told.controls = ["switch"]
            told.expires = ScriptedGateway.seconds + 60
            try gateway.tell(told, id: cursor(11))
            try await eventually("drawn again") { try await isShown("done") }
            try await connection.useControl("c-1")
            try await eventually("drawn after its use") { try await isShown("open") }
            await client.set(lock: .lockedWithPasscode)
            await #expect(throws: ProcessRefusal(description: "\(InteractionRefusal.locked)")) {
                try await connection.useControl("c-1")
            }
        }
        #expect(performed() == 1)
        #expect(try shown() == ["task", "In the app", "open"])
        let file = archive.directory + "/preview.timeline"
        try FileManager.default.copyItem(atPath: archive.timelinePath(info), toPath: file)
        #expect(try shown(in: file) == ["task", "In the app"])
    }

    @Test func whatIsShownFromAfarIsDrawnAndArchivedToo() async throws {
        var state = WidgetDeviceState()
        state.levelOfDetail = .simplified
        let far = try info.environment(at: .surface, on: WidgetDevice(.visionOS), state: state)
        try await running(try client(platform: "visionOS")) { connection in
            let shown = try await connection.interact(with: call, of: info, in: far)
            #expect(shown?.node.texts.first == "far")
        }
        #expect(try shown() == ["task", "In the app"])
        #expect(try shown("--far") == ["far", "In the app"])
    }

    @Test func aControlThatCannotBeDrawnHoldsNoOtherBack() async throws {
        let control = AppIntentControlConfiguration(kind: "room", provider: RoomProvider()) {
            room in
            ControlWidgetButton(action: TapIntent("")) { Text(room) }
        }
        try archive.save(controls: [
            PlacedControl(kind: "room", id: "c-0"),
            PlacedControl(kind: "room", id: "c-1", parameters: ["room": .single("hall")]),
        ])
        try await running(try client(controls: [control])) { connection in
            func isDrawn(_ room: String) async throws -> Bool {
                let shown = try await connection.ask(.controls).arrayValue?.last?.objectValue
                return shown?["content"].flatMap { WidgetNode($0) }?.texts == [room]
            }
            try await eventually("the second is drawn") { try await isDrawn("hall") }
            // The first waits for its next attempt.
            try archive.save(controls: [
                PlacedControl(kind: "room", id: "c-0"),
                PlacedControl(kind: "room", id: "c-1", parameters: ["room": .single("attic")]),
            ])
            try await eventually("it is drawn anew") { try await isDrawn("attic") }
        }
    }

    @Test func aRestartedExtensionPerformsWhatAnEarlierRunHasDrawn() async throws {
        try await running(try client()) { _ in }
        // The new timeline never comes.
        tasks.state.withLock { [tasks] state in
            state.onPerform = {
                tasks.state.withLock { state in
                    state.onBuild = { try? await Task.sleep(for: .seconds(3_600)) }
                }
            }
        }
        try await running(try client()) { connection in
            let shown = try await connection.interact(with: call, of: info, in: info.environment())
            #expect(performed() == 1)
            #expect(shown?.isUpdating == true)
        }
    }

    @Test func theAppAsksForReloadsAndReadsWhatIsPlaced() async throws {
        let center = WidgetCenter(archives: [archive])
        let client = try client()
        try await running(client) { connection in
            center.reloadTimelines(ofKind: "another")
            center.reloadTimelines(ofKind: info.kind)
            try await eventually("reloaded") { tasks.state.withLock { $0.builds } == 2 }
            center.reloadAllTimelines()
            try await eventually("reloaded") { tasks.state.withLock { $0.builds } == 3 }
            #expect(try await center.currentConfigurations() == [info])
            try await connection.set(activity: .foreground, changed: .locale)
            try await eventually("reloaded") { tasks.state.withLock { $0.builds } == 4 }
            #expect(await client.activity == .foreground)
        }
        await #expect(throws: ProcessUnreachable.self, "an empty list would unregister all") {
            try await center.currentConfigurations()
        }
    }

    @Test func theGallerySaysHowAWidgetIsOffered() async throws {
        try archive.recordLaunch()
        let room = AppIntentControlConfiguration(kind: "room", provider: RoomProvider()) { room in
            ControlWidgetButton(action: TapIntent("")) { Text(room) }
        }
        try await running(try client(controls: [room])) { connection in
            let answer = try await connection.ask(.gallery).arrayValue ?? []
            let offers = answer.compactMap(\.objectValue)
            #expect(offers.map { $0["kind"] } == ["tasks", "tasks"])
            #expect(offers.map { $0["isOther"] } == [false, true])
            #expect(offers.map { $0["asksForConfiguration"] } == [true, true])
            #expect(offers[0]["mountingStyles"] == ["elevated"])
            #expect(offers[0]["texture"] == "paper")
            let preview = try #require(offers[0]["preview"].flatMap { WidgetNode($0) })
            #expect(preview.texts == ["task", "In the app"])
            let control = try await connection.ask(.controls).arrayValue?.first?.objectValue
            let field: JSONValue = [
                "name": "room", "title": "Room", "type": "String", "isOptional": true,
            ]
            #expect(control?["parameters"] == [field], "an editor needs all of it")
        }
    }

    @Test func requestsThatAreUnknownOrTooLongAreRefused() async throws {
        try await running(try client()) { _ in
            let path = archive.extensionSocket
            await #expect(throws: ProcessRefusal.self) {
                try await LocalSocket.request(["do": "dance"], at: path)
            }
            let long = String(repeating: "x", count: LocalSocket.requestBytesMax)
            await #expect(throws: ProcessUnreachable.self) {
                try await LocalSocket.request(["do": .string(long)], at: path)
            }
            await #expect(throws: ProcessUnreachable.self, "longer than a socket's path may be") {
                try await LocalSocket.request(JSONObject(), at: "/tmp/\(long.prefix(200))")
            }
        }
    }

    /// As when a process is started again before the one before has ended.
    @Test func aRestartWaitsForTheRunThatEnds() async throws {
        var lock: ArchiveLock? = try archive.lock("extension")
        let client = try client()
        let run = Task { await client.run() }
        for _ in 0..<1_000 { await Task.yield() }
        #expect(gateway.read { $0.registrations.isEmpty })
        withExtendedLifetime(lock) {}
        lock = nil
        await gateway.wait { $0.isBuilt }
        run.cancel()
        await run.value
    }

    @Test func aClientRunsWhereNoArchiveCanBeWritten() async throws {
        let client = try client(archive: ClientArchive(directory: "/dev/null/archive"))
        let run = Task { await client.run() }
        await gateway.wait { $0.stream != nil }
        run.cancel()
        await run.value
    }

    @Test func extensionsOfOneClientRegisterOnlyTheirOwnKinds() async throws {
        let other = ClientArchive(directory: archive.directory + "-other")
        let clients = [
            try client(sharesClient: true),
            try client(kind: "weather", archive: other, sharesClient: true),
        ]
        let runs = clients.map { client in Task { await client.run() } }
        await gateway.wait { Self.registered($0) == ["tasks", "weather"] && $0.rebuilt.count >= 2 }
        await clients[0].place([])
        await gateway.wait { Self.registered($0) == ["weather"] }
        await clients[0].place([info])
        await gateway.wait { Self.registered($0) == ["tasks", "weather"] }
        for run in runs { run.cancel() }
        for run in runs { await run.value }
        // Without its archive an extension knows nothing, and still removes nothing.
        let again = try client(
            archive: ClientArchive(directory: archive.directory + "-new"), sharesClient: true)
        let builds = tasks.state.withLock { $0.builds }
        let run = Task { await again.run() }
        try await eventually("built") { tasks.state.withLock { $0.builds } > builds }
        #expect(gateway.read { Self.registered($0) } == ["tasks", "weather"])
        run.cancel()
        await run.value
    }

    /// Its cursor would confirm what the extension with the other kinds has not built yet.
    @Test func anExtensionAcknowledgesItsOwnKindsAlone() async throws {
        let control = StaticControlConfiguration(kind: "switch") {
            ControlWidgetButton("Switch", action: TapIntent(""))
        }
        let kinds: Set = ["tasks", "switch"]
        let shared = try client(sharesClient: true, controls: [control])
        #expect(await shared.settings.ownKinds == kinds)
        var engine = runningEngine([info]) { $0.ownKinds = kinds }
        let weather = WidgetInfo(kind: "weather", family: .systemSmall)
        engine.hear(of: [weather], at: 11)
        #expect(engine.handle(.idMoved(attempt: 1, cursor(11))) == [])
        var told = claims(sequence: 12)
        told.controls = ["switch"]
        engine.handle(.notification(attempt: 1, told))
        #expect(engine.handle(.idMoved(attempt: 1, cursor(12))) == [acknowledge(cursor(12))])
    }
}

/// Provides placeholders without a control. Without a list its snapshot never comes.
private struct ListProvider: AsyncTimelineProvider {
    let list: String

    func placeholder(in context: Context) -> TapEntry {
        TapEntry(date: .distantPast, list: "", isDone: false)
    }
    func snapshot(in context: Context) async -> TapEntry {
        let gate = AsyncStream.makeStream(of: Void.self)
        if list.isEmpty { for await _ in gate.stream {} }
        gate.continuation.finish()
        return TapEntry(date: .distantPast, list: list, isDone: false)
    }
    func timeline(in context: Context) async -> Timeline<TapEntry> {
        await TapProvider(list: list).timeline(in: context)
    }
}

/// Provides whether the tasks are done.
private struct SwitchProvider: ControlValueProvider {
    let list: String

    var previewValue: Bool { false }

    func currentValue() async -> Bool { TapList.named(list).state.withLock { $0.isDone } }
}

@Suite struct DeclaredPrivacyTests {
    @Test func aWidgetStatesItsProtectionAndItsRedaction() throws {
        let widget = StaticConfiguration(kind: "k", provider: ListProvider(list: ""))
            .dataProtection(.complete).configuresRedaction(false)
        let traits = try #require(try WidgetDeclarations([widget]).traits(ofKind: "k"))
        #expect(traits.dataProtection == .complete && !traits.configuresRedaction)
    }

    @Test func aSnapshotHasADeadline() async throws {
        let runtime = try WidgetDeclarations([
            StaticConfiguration(kind: "k", provider: ListProvider(list: ""))
        ])
        await #expect(throws: Deadline.Passed.self) {
            try await runtime.snapshot(
                of: WidgetInfo(kind: "k", family: .systemSmall), isPreview: true,
                within: .milliseconds(1))
        }
    }
}
