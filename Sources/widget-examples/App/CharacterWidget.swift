import Foundation
import TimelineRuntime

/// The state of a character from a date on.
struct CharacterEntry: TimelineEntry, Codable {
    var date: Date
    var character: GameCharacter

    /// Characters that need help are more relevant.
    var relevance: TimelineEntryRelevance? {
        TimelineEntryRelevance(score: Float(1 - character.health))
    }
}

/// Builds the timelines of the character widget.
struct CharacterProvider: AppIntentTimelineProvider {
    func placeholder(in context: Context) -> CharacterEntry {
        CharacterEntry(date: .now, character: .sample)
    }

    func snapshot(for configuration: ChooseCharacter, in context: Context) async -> CharacterEntry {
        // A gallery does not wait: it shows a sample character.
        CharacterEntry(
            date: .now, character: context.isPreview ? .sample : configuration.character)
    }

    func timeline(
        for configuration: ChooseCharacter, in context: Context
    ) async throws -> Timeline<CharacterEntry> {
        // The query has just found the intent's entity, so it is current. The timeline does not
        // change with time alone; the gateway sends a notification when the character changes.
        let entry = CharacterEntry(date: .now, character: configuration.character)
        return Timeline(entries: [entry], policy: .never)
    }

    func recommendations() async throws -> [AppIntentRecommendation<ChooseCharacter>] {
        try await Installation.current.api.characters().filter(\.isAvailable).map {
            AppIntentRecommendation(
                intent: ChooseCharacter(character: $0), description: "\($0.avatar) \($0.name)")
        }
    }
}

/// The content of the character widget.
struct CharacterView: View {
    @Environment(\.widgetFamily) private var family
    @Environment(\.widgetRenderingMode) private var renderingMode
    var character: GameCharacter

    var body: some View {
        switch family {
        case .systemLarge:
            VStack {
                portrait
                health.invalidatableContent()
                Button(intent: SuperchargeParty()) { Text("Heal everybody") }
            }
            .containerBackground(for: .widget) { Image("meadow") }
            .widgetURL(URL(string: "game://characters/\(character.id)"))
        case .accessoryRectangular:
            HStack {
                portrait.widgetAccentable()
                health
            }
        default:
            VStack {
                portrait
                health
            }
            .containerBackground(for: .widget) { Image("meadow") }
            .widgetURL(URL(string: "game://characters/\(character.id)"))
        }
    }

    @ViewBuilder private var portrait: some View {
        // An emoji keeps its colors; without colors, the name alone is clearer.
        if renderingMode == .fullColor {
            Text("\(character.avatar) \(character.name)")
        } else {
            Text(character.name)
        }
    }

    private var health: some View {
        Gauge(value: character.health) { Text("health") }
    }
}

/// Shows the character that a person chose. The large family can heal the whole party.
struct CharacterWidget: Widget {
    static let kind = "com.mygame.character-detail"

    var body: some WidgetConfiguration {
        AppIntentConfiguration(
            kind: Self.kind, intent: ChooseCharacter.self, provider: CharacterProvider()
        ) { entry in
            CharacterView(character: entry.character)
        }
        .configurationDisplayName("Character")
        .description("How one of your characters fares.")
        .supportedFamilies([.systemSmall, .systemMedium, .systemLarge, .accessoryRectangular])
    }
}
