import Foundation
import TimelineRuntime

/// The quests at a date.
struct QuestsEntry: TimelineEntry, Codable {
    var date: Date
    var quests: [Quest]
    /// The quest whose last change could not be saved.
    var failedQuest: String?
}

/// Builds the timelines of the quests widget.
struct QuestsProvider: AsyncTimelineProvider {
    func placeholder(in context: Context) -> QuestsEntry {
        QuestsEntry(date: .now, quests: [Quest(id: "", title: "Something to do", isDone: false)])
    }

    func snapshot(in context: Context) async -> QuestsEntry {
        context.isPreview
            ? placeholder(in: context)
            : QuestsEntry(date: .now, quests: Installation.current.store.quests)
    }

    func timeline(in context: Context) async throws -> Timeline<QuestsEntry> {
        let store = Installation.current.store
        store.quests = try await Installation.current.api.quests()
        let entry = QuestsEntry(date: .now, quests: store.quests, failedQuest: store.failedQuest)
        return Timeline(entries: [entry], policy: .never)
    }
}

/// The content of the quests widget.
struct QuestsView: View {
    var entry: QuestsEntry

    var body: some View {
        VStack {
            ForEach(entry.quests) { quest in
                Toggle(isOn: quest.isDone, intent: ToggleQuest(quest)) {
                    Text(quest.title).privacySensitive()
                }
                if quest.id == entry.failedQuest { Text("not saved, try again").unredacted() }
            }
        }
        .containerBackground(for: .widget) { Image("parchment") }
    }
}

/// Shows today's quests, each with a toggle.
struct QuestsWidget: Widget {
    static let kind = "com.mygame.quests"

    var body: some WidgetConfiguration {
        StaticConfiguration(kind: Self.kind, provider: QuestsProvider()) { entry in
            QuestsView(entry: entry)
        }
        .configurationDisplayName("Quests")
        .description("What is to be done today.")
        .supportedFamilies([.systemSmall, .systemMedium])
    }
}
