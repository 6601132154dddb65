import Foundation
import Synchronization
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

struct CardEntry: RelevanceEntry {
    var text: String
}

struct ChooseCard: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Choose a card"
    @Parameter(title: "Name", default: "") var name: String

    init() {}

    init(_ name: String) { self.name = name }
}

/// A provider that gives the entries a test sets, and counts how often it is asked.
final class CardProvider: RelevanceEntriesProvider {
    struct State {
        var relevant: [(name: String, context: RelevantContext)] = []
        var asked = 0
        var isUnreachable = false
    }

    let state = Mutex(State())

    func relevance() async throws -> WidgetRelevance<ChooseCard> {
        try state.withLock { state in
            state.asked += 1
            if state.isUnreachable { throw WidgetFailure(description: "no network") }
            return WidgetRelevance(
                state.relevant.map {
                    WidgetRelevanceAttribute(
                        configuration: ChooseCard($0.name), context: $0.context)
                })
        }
    }

    func entry(configuration: ChooseCard, context: Context) async throws -> CardEntry {
        CardEntry(text: "\(configuration.name) \(Int(context.displaySize.width))")
    }

    func placeholder(context: Context) -> CardEntry { CardEntry(text: "…") }
}

/// A provider for a placed widget of a train line, which is relevant when its trains leave.
private final class TrainProvider: AppIntentTimelineProvider {
    let departures: Mutex<[String: Date]>

    init(_ departures: [String: Date]) { self.departures = Mutex(departures) }

    func placeholder(in context: Context) -> TapEntry {
        TapEntry(date: .distantPast, list: "", isDone: false)
    }
    func snapshot(for configuration: ChooseCard, in context: Context) async -> TapEntry {
        placeholder(in: context)
    }
    func timeline(for configuration: ChooseCard, in context: Context) async -> Timeline<TapEntry> {
        let entry = TapEntry(date: .distantPast, list: configuration.name, isDone: false)
        return Timeline(entries: [entry], policy: .never)
    }
    func relevance() async -> WidgetRelevance<ChooseCard> {
        WidgetRelevance(
            departures.withLock { $0 }.map {
                WidgetRelevanceAttribute(
                    configuration: ChooseCard($0.key),
                    context: .date(from: $0.value, to: $0.value + 600))
            })
    }
}

private struct ScoredEntry: TimelineEntry {
    let date: Date
    let relevance: TimelineEntryRelevance?
}

private struct ScoredProvider: AsyncTimelineProvider {
    let entries: [ScoredEntry]
    func placeholder(in context: Context) -> ScoredEntry {
        ScoredEntry(date: .distantPast, relevance: nil)
    }
    func snapshot(in context: Context) async -> ScoredEntry { placeholder(in: context) }
    func timeline(in context: Context) async -> Timeline<ScoredEntry> {
        Timeline(entries: entries, policy: .never)
    }
    func relevance() async -> WidgetRelevance<Void> {
        WidgetRelevance([WidgetRelevanceAttribute(context: .date(.now))])
    }
}

/// Tests for `RelevanceConfiguration` of the heading "Add a widget target to your app", and for the
/// relevance of the widgets that people place.
@Suite(.timeLimit(.minutes(30))) struct RelevanceTests {
    private static let kind = "com.mygame.card"
    private let start = Date(timeIntervalSince1970: 2_000_000_000)
    private let gateway: ScriptedGateway
    private let cards = CardProvider()
    private let archive = ClientArchive(
        directory: NSTemporaryDirectory() + "relevance-\(UUID().uuidString)")

    init() throws { gateway = try ScriptedGateway() }

    private func client(
        _ widgets: [any WidgetConfiguration], placed: [WidgetInfo] = [],
        platform: String = "watchOS", archive: ClientArchive? = nil
    ) throws -> TimelineClient {
        var configuration = try #require(
            TimelineClientConfiguration(
                app: "com.mygame", client: "device-1", platform: platform,
                osVersion: OSVersion("26.1"), widgets: placed, reloadBudget: nil))
        configuration.acceptsRequests = true
        var settings = configuration.engineSettings
        settings.buildRetryBase = .milliseconds(1)
        settings.buildRetryCap = .milliseconds(5)
        return TimelineClient(
            configuration: configuration, widgets: try WidgetDeclarations(widgets),
            connection: gateway,
            verifier: PublishedKeyVerifier(connection: gateway, app: "com.mygame"),
            archive: archive, settings: settings)
    }

    private var card: some WidgetConfiguration {
        RelevanceConfiguration(kind: Self.kind, provider: cards) { Text($0.text) }
    }

    private func shown(_ client: TimelineClient, after seconds: Double) async -> [String] {
        await client.smartStack(at: start + seconds).flatMap(\.node.texts)
    }

    private func say(_ relevant: [(String, Double, Double)]) {
        cards.state.withLock { state in
            state.relevant = relevant.map {
                (name: $0.0, context: .date(from: start + $0.1, to: start + $0.2))
            }
        }
    }

    private func tell(_ sequence: UInt64) throws {
        var told = claims(sequence: sequence)
        told.relevance = [Self.kind]
        try gateway.tell(told, id: cursor(sequence))
    }

    @Test func itIsInNoGalleryAndOnWatchesAlone() throws {
        let runtime = try WidgetDeclarations([card, trains(TrainProvider([:]))])
        #expect(runtime.gallery.map(\.kind) == ["trains"])
        let shown = [WidgetInfo(kind: Self.kind, family: .accessoryRectangular)]
        func widgets(_ platform: WidgetDevice.Platform, _ version: String?) -> [WidgetInfo] {
            runtime.relevanceWidgets(
                on: WidgetDevice(platform, osVersion: version.flatMap { OSVersion($0) }))
        }
        #expect(widgets(.watchOS, "26.0") == shown && widgets(.watchOS, nil) == shown)
        #expect(widgets(.watchOS, "11.6").isEmpty && widgets(.iOS, "26.0").isEmpty)
    }

    @Test func nobodyPlacesItAndItIsShownAsOftenAsItIsRelevant() async throws {
        say([("late", 500, 900), ("quest", 0, 1_000), ("never", 700, 700)])
        let client = try client([card])
        try await gateway.running(client) {
            let widgets = gateway.read { $0.registrations[0].objectValue?["widgets"]?.arrayValue }
            #expect(widgets?.count == 1)
            let registered = widgets?.first?.objectValue
            #expect(registered?["kind"] == .string(Self.kind) && registered?["parameters"] == [:])
            #expect(try await client.widgetCenter.currentConfigurations().isEmpty)
            #expect(await shown(client, after: -1) == [])
            #expect(await shown(client, after: 0) == ["quest 172"])
            #expect(await shown(client, after: 700) == ["quest 172", "late 172"])
            #expect(await shown(client, after: 900) == ["quest 172"])
            #expect(await shown(client, after: 1_000) == [])
            // It may become relevant again when the last context is over.
            let reload = try #require(await client.nextReload)
            #expect(reload >= start + 1_000)
        }
    }

    @Test func whatIsToldStaleIsAskedForAgainAndAcknowledged() async throws {
        defer { try? FileManager.default.removeItem(atPath: archive.directory) }
        say([("quest", 0, 1_000)])
        let client = try client([card], archive: archive)
        try await gateway.running(client) {
            say([("boss", 0, 1_000)])
            try tell(11)
            await gateway.wait { $0.acknowledgedCursor == cursor(11).text }
            #expect(gateway.read { $0.rebuilt.count } == 2)
            #expect(await shown(client, after: 0) == ["boss 172"])
            say([])
            // As another process does.
            WidgetCenter(archives: [archive]).invalidateRelevance(ofKind: Self.kind)
            await gateway.wait { $0.rebuilt.count == 3 }
            #expect(await shown(client, after: 0) == [])
            #expect(cards.state.withLock { $0.asked } == 3)
        }
    }

    /// The shown content stays, and the gateway notifies of the change again after a restart.
    @Test func aProviderThatCannotFetchHoldsTheCursorBack() async throws {
        say([("quest", 0, 1_000)])
        let client = try client([card])
        try await gateway.running(client) {
            cards.state.withLock { $0.isUnreachable = true }
            try tell(11)
            while cards.state.withLock({ $0.asked }) < 3 { await Task.yield() }
            #expect(await client.cursor == cursor(10))
            #expect(await shown(client, after: 0) == ["quest 172"])
            say([("boss", 0, 1_000)])
            cards.state.withLock { $0.isUnreachable = false }
            while await client.cursor != cursor(11) { await Task.yield() }
            #expect(await shown(client, after: 0) == ["boss 172"])
        }
    }

    @Test func aRestartShowsWhatIsArchived() async throws {
        defer { try? FileManager.default.removeItem(atPath: archive.directory) }
        say([("quest", 0, 1_000)])
        try await gateway.running(try client([card], archive: archive)) {}
        let again = try client([card], archive: archive)
        try await gateway.running(again) {
            await gateway.wait { $0.resumptions.count == 2 }
            #expect(await shown(again, after: 0) == ["quest 172"])
        }
        #expect(cards.state.withLock { $0.asked } == 1)
    }

    /// One of the widgets is enough in a crowded stack.
    @Test func aRelevanceWidgetStandsInForThoseOfItsAssociatedKind() async throws {
        say([("quest", 0, 1_000)])
        let placed = WidgetInfo(
            kind: "trains", family: .accessoryRectangular, intent: ChooseCard("A"))
        let client = try client(
            [card.associatedKind("trains"), trains(TrainProvider([:]))], placed: [placed])
        try await gateway.running(client) {
            #expect(await shown(client, after: 0) == ["quest 172"])
            #expect(await shown(client, after: 1_000) == ["A"])
        }
    }

    private func trains(_ provider: TrainProvider) -> some WidgetConfiguration {
        AppIntentConfiguration(kind: "trains", intent: ChooseCard.self, provider: provider) {
            Text($0.list)
        }
    }

    @Test func whatPeoplePlacedComesFirstWhileItsProviderSaysThatItIsRelevant() async throws {
        let provider = TrainProvider(["B": start])
        let placed = ["A", "B", "C"].map {
            WidgetInfo(kind: "trains", family: .accessoryRectangular, intent: ChooseCard($0))
        }
        let client = try client([trains(provider)], placed: placed)
        try await gateway.running(client) {
            while await client.relevance["trains"] == nil { await Task.yield() }
            #expect(await shown(client, after: -1) == ["A", "B", "C"])
            #expect(await shown(client, after: 0) == ["B", "A", "C"])
            #expect(await client.smartStack(at: start).map(\.isRelevant) == [true, false, false])
            provider.departures.withLock { $0 = ["C": start] }
            client.widgetCenter.invalidateRelevance(ofKind: "trains")
            while await shown(client, after: 0) != ["C", "A", "B"] { await Task.yield() }
            // No timeline was requested.
            #expect(gateway.read { $0.rebuilt.count } == 3)
        }
    }

    @Test func iPhonesGoByTheScoreOfTheEntryThatIsShown() async throws {
        func widget(_ kind: String, _ entries: [(Double, Float, Double)])
            -> some WidgetConfiguration
        {
            let entries = entries.map {
                ScoredEntry(
                    date: start + $0.0,
                    relevance: TimelineEntryRelevance(score: $0.1, duration: $0.2))
            }
            return StaticConfiguration(kind: kind, provider: ScoredProvider(entries: entries)) {
                _ in
                Text(kind)
            }
        }
        let client = try client(
            [
                widget("a", [(0, 1, 0), (600, 3, 300)]), widget("b", [(0, 2, 0)]),
                widget("c", [(0, -1, 0)]), card,
            ], placed: ["c", "a", "b"].map { WidgetInfo(kind: $0, family: .systemSmall) },
            platform: "iOS")
        try await gateway.running(client) {
            #expect(await shown(client, after: 0) == ["b", "a", "c"])
            #expect(await shown(client, after: 600) == ["a", "b", "c"])
            #expect(await shown(client, after: 900) == ["b", "c", "a"])
            #expect(await client.relevance.isEmpty, "no iPhone asks for it")
            #expect(cards.state.withLock { $0.asked } == 0)
        }
    }

    @Test(arguments: [
        (0.0, 10.0, [0.0, 9.9], [-0.1, 10.0]), (5, 5, [], [5]), (9, 1, [], [1, 5, 9]),
        (.nan, 1, [], [0]), (0, .infinity, [], [0]),
    ]) func aContextIsRelevantFromItsStartToBeforeItsEnd(
        from: Double, to: Double, inside: [Double], outside: [Double]
    ) {
        let context = RelevantContext.date(from: date(from), to: date(to))
        #expect(inside.allSatisfy { context.contains(date($0)) })
        #expect(!outside.contains { context.contains(date($0)) })
    }

    @Test func aDateIsRelevantAWhileBeforeAndAfter() {
        let around = RelevantContext.date(start)
        #expect(around.contains(start - RelevantContext.secondsAroundDate))
        #expect(
            around.contains(start) && !around.contains(start + RelevantContext.secondsAroundDate))
    }
}
