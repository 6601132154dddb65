import Foundation
import Testing
import WidgetModel

@testable import TimelineClient

private struct GameStatusEntry: TimelineEntry {
    var date: Date
    var gameStatus: String
}

/// A provider that calls its completion handlers as often as a test asks for.
private struct GameStatusProvider: TimelineProvider {
    var hasFetchedGameStatus = true
    var calls = 1

    func placeholder(in context: Context) -> GameStatusEntry {
        GameStatusEntry(date: .distantPast, gameStatus: "")
    }

    func getSnapshot(in context: Context, completion: @escaping (GameStatusEntry) -> Void) {
        for call in 0..<calls {
            let isSample = context.isPreview && !hasFetchedGameStatus
            completion(
                GameStatusEntry(date: .distantPast, gameStatus: isSample ? "—" : "turn \(call)"))
        }
    }

    func getTimeline(
        in context: Context, completion: @escaping (Timeline<GameStatusEntry>) -> Void
    ) {
        let date = Date(timeIntervalSince1970: 0)
        for call in 0..<calls {
            let entry = GameStatusEntry(
                date: date, gameStatus: "turn \(call), \(context.family.rawValue)")
            completion(Timeline(entries: [entry], policy: .after(date + 15 * 60)))
        }
    }
}

private struct GameStatusWidget: Widget {
    var body: some WidgetConfiguration { configuration(GameStatusProvider()) }

    func configuration(_ provider: GameStatusProvider) -> some WidgetConfiguration {
        StaticConfiguration(kind: "com.mygame.game-status", provider: provider)
            .configurationDisplayName("Game Status")
            .description("Shows an overview of your game status")
            .supportedFamilies([.systemSmall])
    }
}

private struct NewsWidget: Widget {
    var body: some WidgetConfiguration {
        StaticConfiguration(kind: "com.mygame.news", provider: GameStatusProvider())
    }
}

private struct GameWidgets: WidgetBundle {
    var hasNews = true

    init() {}

    init(hasNews: Bool) { self.hasNews = hasNews }

    var body: [any Widget] {
        GameStatusWidget()
        if hasNews { NewsWidget() }
    }
}

private struct ChooseTeam: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Choose a team"
    @Parameter(title: "Team", default: "Red") var team: String
}

private struct TeamProvider: AppIntentTimelineProvider {
    func placeholder(in context: Context) -> GameStatusEntry {
        GameStatusEntry(date: .distantPast, gameStatus: "")
    }
    func snapshot(for configuration: ChooseTeam, in context: Context) async -> GameStatusEntry {
        placeholder(in: context)
    }
    func timeline(
        for configuration: ChooseTeam, in context: Context
    ) async -> Timeline<GameStatusEntry> {
        Timeline(entries: [placeholder(in: context)], policy: .never)
    }
}

/// A view that differs between families.
private struct StatusView: View {
    @Environment(\.widgetFamily) private var family
    var status: String
    var until = Date(timeIntervalSince1970: 900)

    private static let overview = URL(string: "game://overview")
    private static let turn = URL(string: "game://turn")

    var body: some View {
        switch family {
        case .systemSmall: Text(status).widgetURL(Self.overview)
        default:
            VStack {
                if let turn = Self.turn { Link(destination: turn) { Text(status) } }
                Text(until, style: .timer)
            }
            .widgetURL(Self.overview)
        }
    }
}

private struct StatusWidget: Widget {
    var body: some WidgetConfiguration {
        StaticConfiguration(kind: "status", provider: GameStatusProvider()) { entry in
            StatusView(status: entry.gameStatus)
        }
        .supportedFamilies([.systemSmall, .systemMedium])
    }
}

/// The article "Creating a widget extension", with one suite for each of its headings.
@Suite("Creating a widget extension") struct CreatingAWidgetExtensionTests {
    private static let info = WidgetInfo(kind: "com.mygame.game-status", family: .systemSmall)

    private static func runtime(
        _ provider: GameStatusProvider = GameStatusProvider()
    ) throws -> WidgetRuntime {
        try WidgetRuntime([GameStatusWidget().configuration(provider)])
    }

    private static func drawn(
        _ status: String, _ family: WidgetFamily, _ state: WidgetDeviceState = WidgetDeviceState()
    ) throws -> WidgetNode {
        let runtime = try WidgetRuntime([StatusWidget().body])
        let info = WidgetInfo(kind: "status", family: family)
        let environment = try WidgetContextRules().environment(
            of: info, with: runtime.gallery[0].traits, at: .homeScreen, on: WidgetDevice(.iOS),
            state: state)
        let entry = GameStatusEntry(date: .distantPast, gameStatus: status)
        return try runtime.draw(entry, of: info, in: environment)
    }

    @Suite("Add a widget target to your app") struct Target {
        @Test func eachKindOfWidgetHasItsConfiguration() throws {
            let runtime = try WidgetRuntime([
                StatusWidget().body,
                AppIntentConfiguration(
                    kind: "team", intent: ChooseTeam.self, provider: TeamProvider()),
            ])
            #expect(runtime.gallery.map(\.kind) == ["status", "team"])
            #expect(runtime.gallery.map { $0.parameters.map(\.name) } == [[], ["team"]])
            #expect(runtime.recommendedKinds == ["team"])
        }

        /// A relevance widget exists on watches only, and is in no gallery because people cannot
        /// place it.
        @Test func aRelevanceWidgetIsInNoGalleryAndOnWatchesAlone() throws {
            let runtime = try WidgetRuntime([
                StatusWidget().body,
                RelevanceConfiguration(kind: "card", provider: CardProvider()) { Text($0.text) },
            ])
            #expect(runtime.gallery.map(\.kind) == ["status"])
            let card = [WidgetInfo(kind: "card", family: .accessoryRectangular)]
            func widgets(_ platform: WidgetDevice.Platform, _ version: String?) -> [WidgetInfo] {
                runtime.relevanceWidgets(
                    on: WidgetDevice(platform, osVersion: version.flatMap { OSVersion($0) }))
            }
            #expect(widgets(.watchOS, "26.0") == card && widgets(.watchOS, nil) == card)
            #expect(widgets(.watchOS, "11.6").isEmpty && widgets(.iOS, "26.0").isEmpty)
        }
    }

    @Suite("Add configuration details") struct Details {
        @Test func modifiersSayWhatTheGalleryShows() throws {
            let widget = try #require(try runtime().gallery.first)
            #expect(widget.kind == "com.mygame.game-status")
            #expect(widget.displayName == "Game Status")
            #expect(widget.description == "Shows an overview of your game status")
            #expect(widget.traits.supportedFamilies == [.systemSmall])
            #expect(widget.parameters.isEmpty)
        }

        @Test func aWidgetWithoutModifiersIsCalledByItsKindAndFitsEverywhere() throws {
            let widget = NewsWidget().body.declaration
            #expect(widget.displayName == "com.mygame.news")
            #expect(widget.traits.supports(.accessoryCorner))
        }

        @Test func nobodyConfiguresAStaticWidgetSoItHasNoSetOfRecommendations() throws {
            #expect(try runtime().recommendedKinds.isEmpty)
        }
    }

    @Suite("Provide timeline entries") struct Entries {
        @Test func theCompletionHandlersTimelineIsTheWidgets() async throws {
            let timeline = try await runtime().timeline(of: info)
            let entry = try #require(timeline.entries.first as? GameStatusEntry)
            #expect(entry.gameStatus == "turn 0, systemSmall")
            #expect(timeline.reloadDate == Date(timeIntervalSince1970: 900))
        }

        @Test func ofSeveralCallsTheFirstCounts() async throws {
            let runtime = try runtime(GameStatusProvider(calls: 3))
            let entry = try await runtime.timeline(of: info).entries.first as? GameStatusEntry
            #expect(entry?.gameStatus == "turn 0, systemSmall")
        }

        @Test func aHandlerThatIsDroppedIsAFailure() async throws {
            let runtime = try runtime(GameStatusProvider(calls: 0))
            await #expect(throws: WidgetFailure.self) {
                try await runtime.timeline(of: info)
            }
        }
    }

    @Suite("Generate a preview for the widget gallery") struct Preview {
        @Test func aPreviewMayBeSampleData() async throws {
            let runtime = try runtime(GameStatusProvider(hasFetchedGameStatus: false))
            let preview = try await runtime.snapshot(of: info, isPreview: true)
            #expect((preview as? GameStatusEntry)?.gameStatus == "—")
            let real = try await runtime.snapshot(of: info, isPreview: false)
            #expect((real as? GameStatusEntry)?.gameStatus == "turn 0")
        }
    }

    @Suite("Display a placeholder widget") struct Placeholder {
        @Test func aPlaceholderHasNoContent() throws {
            let entry = try runtime().placeholder(of: info) as? GameStatusEntry
            #expect(entry?.gameStatus == "")
        }
    }

    @Suite("Add dynamic content to your widget") struct Dynamic {
        /// The date itself is archived, because it goes on counting while the widget is seen,
        /// without the app.
        @Test func aDateIsKeptAsADate() throws {
            guard case .stack(_, let parts) = try drawn("turn 1", .systemMedium).content else {
                Issue.record("not drawn as a stack")
                return
            }
            #expect(parts.last == WidgetNode(.date(Date(timeIntervalSince1970: 900), .timer)))
        }

        @Test(arguments: [WidgetNode.DateStyle.time, .date, .relative, .timer])
        func everyStyleIsKept(style: WidgetNode.DateStyle) throws {
            let node = WidgetNode(.date(Date(timeIntervalSince1970: 1), style))
            #expect(WidgetNode(try JSONValue(parsing: node.json.serialized)) == node)
        }
    }

    @Suite("Respond to user interactions") struct Interactions {
        @Test func aTapOpensTheWidgetsURL() throws {
            let node = try drawn("turn 1", .systemSmall)
            #expect(node.widgetURL == "game://overview" && node.content == .text("turn 1"))
        }

        @Test func aLinkHasItsOwn() throws {
            let node = try drawn("turn 1", .systemMedium)
            guard case .stack(_, let parts) = node.content else {
                Issue.record("not drawn as a stack")
                return
            }
            #expect(node.widgetURL == "game://overview")
            #expect(
                parts.first
                    == WidgetNode(.link("game://turn", label: WidgetNode(.text("turn 1")))))
        }
    }

    @Suite("Preview widgets in Xcode") struct PreviewsOfEntries {
        /// A preview draws an entry of your own in each family, without provider, device or
        /// gateway.
        @Test func anyEntryIsDrawnInAnyFamily() throws {
            #expect("\(try drawn("sample", .systemSmall))".contains("sample"))
            #expect("\(try drawn("sample", .systemMedium))".contains("sample"))
            #expect(throws: UnsupportedContext.undeclared(.systemLarge)) {
                try drawn("sample", .systemLarge)
            }
        }
    }

    @Suite("Expand your widget’s capabilities") struct Expand {
        @Test func whatAWidgetSupportsIsWhatIsOffered() throws {
            let runtime = try WidgetRuntime([
                StatusWidget().body, NewsWidget().body.supportedFamilies([.accessoryCircular]),
            ])
            let offered = { (location: WidgetLocation, platform: WidgetDevice.Platform) in
                WidgetContextRules().gallery(
                    of: runtime.gallery, at: location, on: WidgetDevice(platform), traits: \.traits
                ).suggested.map { "\($0.widget.kind) \($0.families.map(\.rawValue))" }
            }
            #expect(
                offered(.homeScreen, .iOS) == [#"status ["systemSmall", "systemMedium"]"#])
            #expect(offered(.lockScreen, .iOS) == [#"com.mygame.news ["accessoryCircular"]"#])
            #expect(
                offered(.lockScreen, .iPadOS) == [
                    #"status ["systemSmall"]"#, #"com.mygame.news ["accessoryCircular"]"#,
                ])
            #expect(offered(.watchFace, .watchOS) == [#"com.mygame.news ["accessoryCircular"]"#])
        }
    }

    @Suite("Create multiple widget extensions") struct Multiple {
        @Test func aBundleHasItsWidgetsInTheirOrder() throws {
            let all = try WidgetRuntime(GameWidgets())
            #expect(all.gallery.map(\.kind) == ["com.mygame.game-status", "com.mygame.news"])
            let fewer = try WidgetRuntime(GameWidgets(hasNews: false))
            #expect(fewer.gallery.map(\.kind) == ["com.mygame.game-status"])
        }
    }
}
