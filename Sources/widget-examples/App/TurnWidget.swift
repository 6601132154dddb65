import Foundation
import TimelineClient

/// The turn of the game at a moment.
struct TurnEntry: TimelineEntry, Codable {
    var date: Date
    /// `nil` when nothing was heard of the game yet.
    var turn: Int?
}

/// Builds the timelines of the widget for the game's turn, as providers with completion handlers do.
struct TurnProvider: TimelineProvider {
    func placeholder(in context: Context) -> TurnEntry { TurnEntry(date: .now, turn: nil) }

    func getSnapshot(in context: Context, completion: @escaping @Sendable (TurnEntry) -> Void) {
        guard !context.isPreview else {
            completion(TurnEntry(date: .now, turn: nil))
            return
        }
        Task {
            completion(TurnEntry(date: .now, turn: try? await Installation.current.api.turn()))
        }
    }

    func getTimeline(
        in context: Context, completion: @escaping @Sendable (Timeline<TurnEntry>) -> Void
    ) {
        Task {
            // Without an answer the handler is dropped, and the provider is asked again later: an
            // old turn must not pass for the current one.
            let entry = TurnEntry(date: .now, turn: try await Installation.current.api.turn())
            // The gateway tells of a new turn at once; once in a quarter of an hour is for the day
            // on which nobody hears of it.
            completion(Timeline(entries: [entry], policy: .after(entry.date + 15 * 60)))
        }
    }
}

/// What the widget shows in the families it supports.
struct TurnView: View {
    @Environment(\.widgetFamily) private var family
    var turn: Int?

    var body: some View {
        switch family {
        case .systemSmall:
            VStack {
                Image(systemName: "hourglass")
                Text(turn.map { "Turn \($0)" } ?? "No game")
            }
            .containerBackground(for: .widget) { Image("board") }
        default:
            Text("Nothing to show in this size")
        }
    }
}

/// Shows which turn the game is at; there is nothing to choose about it.
struct TurnWidget: Widget {
    static let kind = "com.mygame.game-status"

    var body: some WidgetConfiguration {
        StaticConfiguration(kind: Self.kind, provider: TurnProvider()) { entry in
            TurnView(turn: entry.turn)
        }
        .configurationDisplayName("Turn")
        .description("Which turn your game is at.")
        .supportedFamilies([.systemSmall])
    }
}
