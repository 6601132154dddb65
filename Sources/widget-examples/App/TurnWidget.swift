import Foundation
import TimelineRuntime

/// The turn of the game at a date.
struct TurnEntry: TimelineEntry, Codable {
    var date: Date
    /// The number of the turn; `nil` before the game has reported any.
    var turn: Int?
}

/// Builds the timelines of the widget for the game's turn, with completion handlers.
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
            // On failure the handler is released without a call, and the provider is asked again
            // later: an old turn must not be shown as the current one.
            let entry = TurnEntry(date: .now, turn: try await Installation.current.api.turn())
            // The gateway reports a new turn at once; reloading every quarter of an hour covers the
            // case that no notification arrives.
            completion(Timeline(entries: [entry], policy: .after(entry.date + 15 * 60)))
        }
    }
}

/// The content of the turn widget in the families it supports.
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

/// Shows the current turn of the game; has no configuration.
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
