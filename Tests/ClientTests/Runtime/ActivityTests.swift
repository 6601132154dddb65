import ArgumentParser
import Foundation
import GatewayTestSupport
import Synchronization
import Testing
import TimelineGatewayClient
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews
@testable import timelinectl

struct RaceAttributes: ActivityAttributes {
    struct ContentState: Codable, Hashable {
        var place: Int
        var isReady = false
    }

    var line: String
}

typealias Race = Activity<RaceAttributes>

struct ReadyIntent: LiveActivityIntent {
    static let title: LocalizedStringResource = "Ready"
    @Parameter(title: "Activity", default: "") var id: String

    init() {}
    init(_ id: String) { self.id = id }

    func perform() async throws -> some IntentResult {
        for race in Race.activities where race.id == id {
            var content = race.content
            content.state.isReady.toggle()
            await race.update(content)
        }
        return .result()
    }
}

private func content(
    _ place: Int, staleDate: Date? = nil, score: Double = 0
) -> ActivityContent<RaceAttributes.ContentState> {
    ActivityContent(state: .init(place: place), staleDate: staleDate, relevanceScore: score)
}

/// Starts a race in the center of the task.
private func race(
    _ line: String = "7", _ type: PushType? = nil, staleDate: Date? = nil, score: Double = 0
) throws -> Race {
    try Race.request(
        attributes: RaceAttributes(line: line),
        content: content(0, staleDate: staleDate, score: score), pushType: type)
}

/// The Live Activities of an extension, started by the app in the same process or in another one.
@Suite(.timeLimit(.minutes(30))) final class ActivityTests: Sendable {
    private let gateway: ScriptedGateway
    private let archive = ClientArchive(
        directory: NSTemporaryDirectory() + "race-\(UUID().uuidString)")
    /// The app's server, which the content source asks.
    private let source = Mutex(Source())

    private struct Source {
        var place = 1
        var asked: [String] = []
        var onAsk: (@Sendable () async throws -> Void)?
    }

    init() throws { gateway = try ScriptedGateway() }
    deinit { try? FileManager.default.removeItem(atPath: archive.directory) }

    private func client(shares: Bool = false, declares: Bool = true) throws -> TimelineClient {
        var configuration = try #require(
            TimelineClientConfiguration(app: "com.mygame", client: "device-1", platform: "iOS"))
        (configuration.acceptsRequests, configuration.sharesClient) = (true, shares)
        configuration.reloadBudget = 1
        var settings = configuration.engineSettings
        (settings.retryBase, settings.buildRetryBase) = (.milliseconds(1), .milliseconds(1))
        let activity = ActivityConfiguration(for: RaceAttributes.self) { context in
            Toggle(isOn: context.state.isReady, intent: ReadyIntent(context.activityID)) {
                Text(verbatim: "\(context.state.place)\(context.isStale ? " late" : "")")
            }
            .widgetURL(URL(string: "race:///\(context.attributes.line)"))
        } dynamicIsland: { context in
            DynamicIsland(
                expanded: {
                    DynamicIslandExpandedRegion(.bottom) { Text("\(context.state.place)") }
                }, compactLeading: { Text("a") }, compactTrailing: { Text("z") },
                minimal: { Text("m") })
        }
        .contentSource { [self] context in
            let (place, onAsk) = source.withLock { source in
                defer { source.onAsk = nil }
                source.asked.append(context.attributes.line)
                return (source.place, source.onAsk)
            }
            try await onAsk?()
            return .update(content(place))
        }
        return TimelineClient(
            configuration: configuration,
            widgets: try WidgetDeclarations(declares ? [activity] : []), connection: gateway,
            verifier: PublishedKeyVerifier(connection: gateway, app: "com.mygame"),
            archive: archive, app: AppConnection(archive: archive), settings: settings)
    }

    /// Runs a client while `body`, with the client's center, watches it.
    private func running(_ client: TimelineClient, _ body: () async throws -> Void) async throws {
        gateway.closeStream()
        try await gateway.running(client) {
            try await WidgetCenter.$current.withValue(WidgetCenter(client: client)) {
                try await body()
            }
        }
    }

    /// Calls a function in an app whose extensions have these archives.
    private func inApp<R>(_ archives: ClientArchive..., call: () throws -> R) throws -> R {
        try WidgetCenter.$current.withValue(WidgetCenter(archives: archives), operation: call)
    }

    private func environment(_ presentation: ActivityPresentation) throws -> WidgetEnvironment {
        try #require(WidgetContextRules().environment(of: presentation, on: WidgetDevice(.iOS)))
    }

    private func shown(
        _ client: TimelineClient, _ presentation: ActivityPresentation = .lockScreen
    ) async throws -> [[String]] {
        let environment = try environment(presentation)
        var texts: [[String]] = []
        for widget in client.activities(in: presentation) {
            texts.append(await client.shown(widget, in: environment)?.node.texts ?? [])
        }
        return texts
    }

    /// Tells of a stale activity, and waits until that is acknowledged.
    private func tell(_ activity: ReloadNotification.Activity, at sequence: UInt64) async throws {
        var told = claims(sequence: sequence)
        (told.activities, told.expires) = ([activity], ScriptedGateway.seconds + 60)
        try gateway.tell(told, id: cursor(sequence))
        await gateway.wait { $0.acknowledgedCursor == cursor(sequence).text }
    }

    private func registered(_ member: String = "activities") -> [JSONObject] {
        gateway.read { state in
            (state.inForce.objectValue?[member]?.arrayValue ?? []).compactMap(\.objectValue)
        }
    }

    private func asked() -> [String] { source.withLock { $0.asked } }

    @Test func anAppStartsUpdatesAndEndsItsActivities() async throws {
        let client = try client()
        try await running(client) {
            let (low, high) = (try race(), try race("8", score: 2))
            try await eventually("drawn") { try await shown(client).count == 2 }
            await high.update(content(5, score: 2))
            #expect(try await shown(client) == [["5"], ["0"]], "by their relevance")
            #expect(try await shown(client, .expanded) == [["5"], ["0"]])
            #expect(Set(Race.activities.map(\.id)) == [low.id, high.id])
            var places: [Int] = []
            for await update in low.contentUpdates {
                places.append(update.state.place)
                if places.count == 2 { break }
                await low.update(content(1, staleDate: .distantPast))
            }
            #expect(try await shown(client) == [["5"], ["1 late"]] && places == [0, 1])
            #expect(low.activityState == .stale)
            await low.end(content(2), dismissalPolicy: .after(.now + 3_600))
            await low.update(content(3))
            #expect(try await shown(client) == [["5"], ["2"]] && low.activityState == .ended)
            let older = try JSONValue(encoding: #require(client.activities[high.id]))
            var states: [ActivityState] = []
            for await state in high.activityStateUpdates {
                states.append(state)
                await high.end(nil, dismissalPolicy: .immediate)
            }
            #expect(states == [.active, .dismissed])
            #expect(try await client.ask(.activity, ["activity": older]) == false)
            #expect(try await shown(client) == [["2"]], "an update starts nothing")
            #expect(gateway.read { $0.registrations.count } == 1 && asked().isEmpty, "by no other")
        }
    }

    /// The client is shared, so that the extension registers and acknowledges its types alone.
    @Test func whatTheGatewayNamesIsAskedForUntilTheAnswerIsShown() async throws {
        let client = try client(shares: true)
        try await running(client) {
            let seven = try race("7", .token)
            try await eventually("asked") { try await shown(client) == [["1"]] }
            let eight = try race("8", .channel("bWF0Y2g="))
            try await eventually("asked") { try await shown(client) == [["1"], ["1"]] }
            #expect(registered().map { $0["attributes"] } == [["line": "7"], ["line": "8"]])
            #expect(registered().map { $0["channel"]?.stringValue } == [nil, "bWF0Y2g="])
            #expect(asked() == ["7", "8"], "each once, when it is registered")
            source.withLock { source in
                source.place = 3
                source.onAsk = { throw TestFailure("no network") }
            }
            try await tell(
                .init(type: "RaceAttributes", attributes: [.init(name: "line", value: "7")]),
                at: 11)
            #expect(try await shown(client) == [["3"], ["1"]])
            #expect(asked().dropFirst(2) == ["7", "7"])
            source.withLock { source in
                source.onAsk = { [self] in
                    self.source.withLock { $0.place = 4 }
                    await seven.update(content(9))
                }
            }
            try await tell(.init(type: "RaceAttributes", id: seven.id), at: 12)
            #expect(try await shown(client) == [["4"], ["1"]], "the first answer is older")
            #expect(gateway.read { $0.rebuilt.isEmpty && $0.failed.isEmpty }, "it is no widget")
            await eight.end(nil)
            try await eventually("registered no more") { registered().count == 1 }
        }
    }

    @Test func aRestartShowsWhatIsArchived() async throws {
        let first = try client()
        try await running(first) {
            _ = try race("7", .token)
            try await eventually("asked") { try await shown(first) == [["1"]] }
        }
        let archived = try inApp(archive) { Race.activities }
        #expect(archived.map(\.content.state.place) == [1], "other processes read it there")
        let update = Task { for race in archived { await race.update(content(2)) } }
        for _ in 0..<1_000 { await Task.yield() }
        let second = try client()
        try await running(second) {
            await update.value
            #expect(try await shown(second) == [["2"]], "an update waits for the restart")
            try await tell(.init(type: "RaceAttributes"), at: 11)
            #expect(asked() == ["7", "7"], "what is fresh is not asked for")
        }
        try await running(client(declares: false)) { #expect(Race.activities.isEmpty) }
        #expect(archive.activities == KeptActivities())
    }

    @Test func aTapOpensTheAppOrIsPerformedThere() async throws {
        let client = try client()
        try await running(client) {
            let opened = Mutex<URL?>(nil)
            let app = try AppListener(
                archive: archive, intents: WidgetDeclarations([], intents: [ReadyIntent.self])
            ) { activity in opened.withLock { $0 = activity.url } }
            let ready = try inApp(ClientArchive(directory: "/none"), archive) { try race() }
            try await eventually("drawn") { try await shown(client) == [["0"]] }
            let connection = ExtensionConnection(archive: archive)
            let call = IntentCall(ReadyIntent(ready.id))
            let widget = try #require(client.activities(in: .lockScreen).first)
            let tapped = try await connection.interact(
                with: call, of: widget, in: environment(.lockScreen))
            #expect(tapped?.node.control(of: call) == .toggle(isOn: true))
            #expect(tapped?.isUpdating == false && ready.content.state.isReady)
            await client.place([])
            try await connection.open(widget, in: environment(.lockScreen))
            #expect(opened.withLock { $0 } == URL(string: "race:///7"))
            withExtendedLifetime(app) {}
        }
    }

    @Test func theSystemsTokensAreRegisteredUntilTheEnd() async throws {
        let client = try client()
        await client.set(pushToStartToken: Data([11]), ofType: "RaceAttributes")
        await client.set(pushToStartToken: Data([12]), ofType: "Undeclared")
        try await running(client) {
            let race = try race("7", .token)
            try await eventually("registered") { registered().count == 1 }
            await client.set(pushToken: Data([10]), ofActivity: race.id)
            var own = race.pushTokenUpdates.makeAsyncIterator()
            #expect(await own.next() == Data([10]))
            var starts = Race.pushToStartTokenUpdates.makeAsyncIterator()
            #expect(await starts.next() == Data([11]))
            func tokens(_ member: String) -> [String?] {
                registered(member).map { $0["delivery"]?.objectValue?["token"]?.stringValue }
            }
            try await eventually("registered") { tokens("activities") == ["0a"] }
            await race.end(nil)
            try await eventually("registered no more") { registered().isEmpty }
            #expect(tokens("activityStarts") == ["0b"])
        }
    }

    @Test func anActivityEndsAndIsDismissedByItself() throws {
        func kept(_ policy: ActivityUIDismissalPolicy? = nil) throws -> KeptActivity {
            var kept = try KeptActivity(
                RaceAttributes(line: "7"), content(0, staleDate: Date.now + 1_800), nil)
            if let policy { kept.end(policy) }
            return kept
        }
        func phases(_ kept: KeptActivity, _ hours: Double...) -> [ActivityState] {
            hours.map { kept.phase(at: kept.begun + $0 * 3_600) }
        }
        #expect(
            try phases(kept(), 0, 1, 7.9, 8.1, 11.9, 12.1)
                == [.active, .stale, .stale, .ended, .ended, .dismissed])
        #expect(try phases(kept(.default), 0.1, 3.9, 4.1) == [.ended, .ended, .dismissed])
        #expect(try phases(kept(.immediate), 0.1) == [.dismissed])
        #expect(try phases(kept(.after(.now + 3_600)), 0.9, 1.1) == [.ended, .dismissed])
        #expect(try phases(kept(.after(.distantFuture)), 3.9, 4.1) == [.ended, .dismissed])
        #expect(throws: ActivityAuthorizationError.attributesTooLarge) {
            let long = String(repeating: "x", count: KeptActivity.bytesMax)
            return try KeptActivity(RaceAttributes(line: long), content(0), nil)
        }
        var all = KeptActivities()
        for _ in 0..<KeptActivities.countMax { try all.put(kept()) }
        let one = try kept()
        #expect(throws: ActivityAuthorizationError.targetMaximumExceeded) { try all.put(one) }
        all.list[0].end(.default)
        try all.put(one)
        #expect(all.list.count == KeptActivities.countMax && all[one.id] != nil)
    }

    @Test func whatTheAppRegistersStaysInTheExtensionsRegistrations() async throws {
        func process(_ widgets: [ConfiguredWidget] = []) throws -> GatewayClient {
            let client = GatewayClient(
                app: "com.mygame", client: "device-1", connection: gateway,
                verifier: PublishedKeyVerifier(connection: gateway, app: "com.mygame"),
                directory: URL(filePath: archive.directory),
                registration: { ClientRegistration(platform: "iOS", widgets: widgets) })
            return try #require(client)
        }
        let start = DeliveryAddress.apns(.init(pushType: "liveactivity", token: "0b"))
        let own = RegisteredActivity(
            type: "A", id: "2", of: ["line": 7, "a\n": 1, "": 2], channel: "c\n", delivery: nil)
        #expect(own == RegisteredActivity(type: "A", id: "2", attributes: ["line": .single("7")]))
        let app = try process()
        try await app.register(activities: [.init(type: "A", id: "1")], start: nil, ofType: "A")
        try await app.register(activities: [.init(type: "B", id: "3")], start: start, ofType: "B")
        try await app.register(activities: [own], start: nil, ofType: "A")
        try await process([ConfiguredWidget(kind: "k", family: "systemSmall")]).register()
        #expect(registered().map { $0["id"] } == ["3", "2"])
        #expect(registered("activityStarts").map { $0["type"] } == ["B"])
        #expect(registered("widgets").count == 1)
    }

    @Test func showDrawsEachPresentation() async throws {
        let client = try client()
        try await running(client) {
            _ = try race(staleDate: Date.now + 3_600)
            try await eventually("drawn") { try await shown(client) == [["0"]] }
        }
        func show(_ arguments: String...) throws -> [WidgetReport] {
            try ShowCommand.parse([archive.directory] + arguments).reports()
        }
        let presentations = try show().compactMap { $0.environment?.activityPresentation }
        #expect(presentations == ActivityPresentation.allCases)
        #expect(try show().map { $0.node?.texts } == [["0"], ["0"], ["a", "z"], ["m"]])
        #expect(try show("--location", "dynamicIsland").count == 3)
        let late = try show("--family", "lockScreen", "--at", (Date.now + 7_200).ISO8601Format())
        #expect(late.map(\.state) == [.stale] && late.map { $0.node?.texts } == [["0 late"]])
        let minimal = try ShowCommand.parse([archive.directory, "--family", "minimal"])
        let drawn = String(decoding: try minimal.drawing(.svg), as: UTF8.self)
        #expect(drawn.contains(">m<") && drawn.contains("#000000"), "the island is black")
    }
}
