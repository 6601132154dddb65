import Foundation
import TimelineClient

/// How a character fares from a moment on.
struct CharacterEntry: TimelineEntry, Codable {
    var date: Date
    var character: GameCharacter

    /// Who needs help matters more.
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
        // A gallery does not wait: it shows a character that is nobody's.
        CharacterEntry(
            date: .now, character: context.isPreview ? .sample : configuration.character)
    }

    func timeline(
        for configuration: ChooseCharacter, in context: Context
    ) async throws -> Timeline<CharacterEntry> {
        // The intent's entity was found by its query a moment ago, so it is as new as it has to be.
        // Nothing changes with time alone: the gateway says when the character has changed.
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

/// What the widget shows.
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
        // An emoji keeps its colours; where there are none the name alone says more.
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

/// Shows the character that a person chose; the large one can heal the whole party.
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
