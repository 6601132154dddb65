import Foundation
import Testing

@testable import TimelineClient

private struct GameStatusEntry: TimelineEntry {
    var date: Date
    var gameStatus: String
}

/// Calls its completion handlers as often as it is told to.
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

/// The systems of the article "Creating a widget extension", heading by heading.
@Suite("Creating a widget extension") struct CreatingAWidgetExtensionTests {
    private static let info = WidgetInfo(kind: "com.mygame.game-status", family: .systemSmall)

    private static func runtime(
        _ provider: GameStatusProvider = GameStatusProvider()
    ) throws -> WidgetRuntime {
        try WidgetRuntime([GameStatusWidget().configuration(provider)])
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
            #expect(try runtime().recommendationSets().isEmpty)
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
            await #expect(throws: WidgetRuntime.Failure.self) {
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

    @Suite("Create multiple widget extensions") struct Multiple {
        @Test func aBundleHasItsWidgetsInTheirOrder() throws {
            let all = try WidgetRuntime(GameWidgets())
            #expect(all.gallery.map(\.kind) == ["com.mygame.game-status", "com.mygame.news"])
            let fewer = try WidgetRuntime(GameWidgets(hasNews: false))
            #expect(fewer.gallery.map(\.kind) == ["com.mygame.game-status"])
        }
    }
}
