// swift-format-ignore-file
// The samples of the article "Adding interactivity to widgets and Live Activities", as they are
// printed. What is between two samples are declarations that the article leaves out.
import Foundation
import Synchronization
import TimelineRuntime

// MARK: Sample 7
struct SuperCharge: AppIntent {
    
    static var title: LocalizedStringResource = "Emoji Ranger SuperCharger"
    static var description = IntentDescription("All heroes get instant 100% health.")
    
    func perform() async throws -> some IntentResult {
        EmojiRanger.superchargeHeros()
        return .result()
    }
}

struct EmojiRanger: Sendable {
    static let supercharges = Mutex(0)
    static func superchargeHeros() { supercharges.withLock { $0 += 1 } }

    static let spouty = EmojiRanger(avatar: "🐳", bio: "Sprays water", url: URL(string: "game:///spouty"))

    var avatar: String
    var bio: String
    var url: URL?
}

struct SimpleEntry: TimelineEntry {
    var date: Date
    var relevance: TimelineEntryRelevance?
    var hero: EmojiRanger
}

struct AvatarView: View {
    var hero: EmojiRanger

    init(_ hero: EmojiRanger) { self.hero = hero }

    var body: some View { Text(hero.avatar) }
}

extension Color {
    static let gameBackgroundColor = Color("gameBackground")
}

// MARK: Sample 8
struct EmojiRangerWidgetEntryView: View {
    var entry: SimpleEntry
    
    @Environment(\.widgetFamily) var family
    
    @ViewBuilder
    var body: some View {
        switch family {


        case .systemLarge:
            VStack {
                HStack(alignment: .top) {
                    AvatarView(entry.hero)
                        .foregroundStyle(.white)
                    Text(entry.hero.bio)
                        .foregroundStyle(.white)
                }
                .padding()
                if #available(iOS 17.0, *) {
                    HStack(alignment: .top) {
                        Button(intent: SuperCharge()) {
                            Image(systemName: "bolt.fill")
                        }
                    }
                    .tint(.white)
                    .padding()
                }
            }
            .containerBackground(for: .widget) {
                Color.gameBackgroundColor
            }
            .widgetURL(entry.hero.url)
            
        // Code for other widget sizes.
        default: AvatarView(entry.hero)
        }
    }
}   

struct EmojiRangerWidget: Widget {
    var body: some WidgetConfiguration {
        StaticConfiguration(kind: "EmojiRangerWidget", provider: HeroProvider()) { entry in
            EmojiRangerWidgetEntryView(entry: entry)
        }
    }
}

struct HeroProvider: AsyncTimelineProvider {
    func placeholder(in context: Context) -> SimpleEntry {
        SimpleEntry(date: .distantPast, relevance: nil, hero: .spouty)
    }
    func snapshot(in context: Context) async -> SimpleEntry { placeholder(in: context) }
    func timeline(in context: Context) async -> Timeline<SimpleEntry> {
        Timeline(entries: [placeholder(in: context)], policy: .never)
    }
}

// MARK: Sample 9
struct TodoItemView: View {
    var todo: Todo


    var body: some View {
        Toggle(isOn: todo.complete, intent: ToggleTodoIntent(todo.id)) {
            Text(todo.body)
        }
        .toggleStyle(TodoToggleStyle())
    }
}

struct Todo: Sendable {
    var id: Int
    var body: String
    var complete: Bool
}

struct ToggleTodoIntent: AppIntent {
    static var title: LocalizedStringResource = "Complete a Todo"
    static let completed = Mutex<[Int]>([])

    @Parameter(title: "Todo", default: 0)
    var todo: Int

    init() {}

    init(_ todo: Int) { self.todo = todo }

    func perform() async throws -> some IntentResult {
        Self.completed.withLock { $0.append(todo) }
        return .result()
    }
}

struct TodoToggleStyle: ToggleStyle {
    func makeBody(configuration: Configuration) -> some View {
        Label {
            configuration.label
        } icon: {
            Image(systemName: configuration.isOn ? "checkmark.circle.fill" : "circle")
        }
    }
}
