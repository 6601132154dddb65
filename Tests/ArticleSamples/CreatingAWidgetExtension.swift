// swift-format-ignore-file
// The samples of the article "Creating a widget extension", as they are printed. What is between
// two samples are declarations that the article leaves out; an enumeration around a sample keeps its
// names apart from another's.
import Foundation
import TimelineRuntime

// MARK: Sample 10
@main
struct GameStatusWidget: Widget {
    var body: some WidgetConfiguration {
        StaticConfiguration(
            kind: "com.mygame.game-status",
            provider: GameStatusProvider(),
        ) { entry in
            GameStatusView(entry.gameStatus)
        }
        .configurationDisplayName("Game Status")
        .description("Shows an overview of your game status")
        .supportedFamilies([.systemSmall])
    }
}

// MARK: Sample 11
struct GameStatusEntry: TimelineEntry {
    var date: Date
    var gameStatus: String
}

// MARK: Sample 12
enum ProvideTimelineEntries {
struct GameStatusProvider: TimelineProvider {
    func getTimeline(in context: Context, completion: @escaping (Timeline<GameStatusEntry>) -> Void) {
        // Create a timeline entry for "now."
        let date = Date()
        let entry = GameStatusEntry(
            date: date,
            gameStatus: gameStatusFromServer
        )


        // Create a date that's 15 minutes in the future.
        let nextUpdateDate = Calendar.current.date(byAdding: .minute, value: 15, to: date)!


        // Create the timeline with the entry and a reload policy with the date
        // for the next update.
        let timeline = Timeline(
            entries:[entry],
            policy: .after(nextUpdateDate)
        )


        // Call the completion to pass the timeline to WidgetKit.
        completion(timeline)
    }
}
}

typealias GameStatusProvider = ProvideTimelineEntries.GameStatusProvider

extension ProvideTimelineEntries.GameStatusProvider {
    var gameStatusFromServer: String { "Your turn" }

    func placeholder(in context: Context) -> GameStatusEntry {
        GameStatusEntry(date: .distantPast, gameStatus: "")
    }

    func getSnapshot(in context: Context, completion: @escaping (GameStatusEntry) -> Void) {
        completion(placeholder(in: context))
    }
}

// MARK: Sample 13
enum GenerateAPreview {
struct GameStatusProvider: TimelineProvider {
    var hasFetchedGameStatus: Bool
    var gameStatusFromServer: String


    func getSnapshot(in context: Context, completion: @escaping (Entry) -> Void) {
        let date = Date()
        let entry: GameStatusEntry


        if context.isPreview && !hasFetchedGameStatus {
            entry = GameStatusEntry(date: date, gameStatus: "—")
        } else {
            entry = GameStatusEntry(date: date, gameStatus: gameStatusFromServer)
        }
        completion(entry)
    }
}
}

extension GenerateAPreview.GameStatusProvider {
    func placeholder(in context: Context) -> GameStatusEntry {
        GameStatusEntry(date: .distantPast, gameStatus: "")
    }

    func getTimeline(in context: Context, completion: @escaping (Timeline<GameStatusEntry>) -> Void) {
        completion(Timeline(entries: [placeholder(in: context)], policy: .never))
    }
}

// MARK: Sample 14
struct GameStatusView : View {
    @Environment(\.widgetFamily) var family: WidgetFamily
    var gameStatus: GameStatus
    var selectedCharacter: CharacterDetail


    @ViewBuilder
    var body: some View {
        switch family {
        case .systemSmall: GameTurnSummary(gameStatus)
        default: GameDetailsNotAvailable()
        }
    }
}

extension GameStatusView {
    init(_ text: String) {
        self.init(
            gameStatus: GameStatus(text: text), selectedCharacter: CharacterDetail.allCharacters[0])
    }
}

struct GameStatus: Sendable {
    var text: String
}

struct GameTurnSummary: View {
    var status: GameStatus

    init(_ status: GameStatus) { self.status = status }

    var body: some View { Text(status.text) }
}

struct GameDetailsNotAvailable: View {
    var body: some View { Text(verbatim: "not available") }
}

// MARK: Sample 15
// The heading "Preview widgets in Xcode": a comment that names the macro is none of its arguments.
#Preview(as: .systemMedium, widget: {
    EmojiRangerWidget()
}, timeline: {
    SimpleEntry(date: Date(), relevance: nil, hero: .spouty)
})
