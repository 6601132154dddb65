// swift-format-ignore-file
// The samples of the article "Making a configurable widget", as they are printed. What is between
// two samples are declarations that the article leaves out.
import Foundation
import TimelineRuntime

// MARK: Sample 1
struct SelectCharacterIntent: WidgetConfigurationIntent {
    static var title: LocalizedStringResource = "Select Character"
    static var description = IntentDescription("Selects the character to display information for.")


    @Parameter(title: "Character")
    var character: CharacterDetail


    init(character: CharacterDetail) {
        self.character = character
    }


    init() {
    }
}

// MARK: Sample 2
struct CharacterDetail: AppEntity {
    let id: String
    let avatar: String
    let healthLevel: Double
    let heroType: String
    let isAvailable = true
    
    static var typeDisplayRepresentation: TypeDisplayRepresentation = "Character"
    static var defaultQuery = CharacterQuery()
            
    var displayRepresentation: DisplayRepresentation {
        DisplayRepresentation(title: "\(avatar) \(id)")
    }


    static let allCharacters: [CharacterDetail] = [
        CharacterDetail(id: "Power Panda", avatar: "🐼", healthLevel: 0.14, heroType: "Forest Dweller"),
        CharacterDetail(id: "Unipony", avatar: "🦄", healthLevel: 0.67, heroType: "Free Rangers"),
        CharacterDetail(id: "Spouty", avatar: "🐳", healthLevel: 0.83, heroType: "Deep Sea Goer")
    ]
}

// MARK: Sample 3
struct TitledIntent: WidgetConfigurationIntent {
    static var title: LocalizedStringResource = "Choose a Title"

@Parameter(title: "Title", default: "A Default Title")
var title: String

}

// MARK: Sample 4
struct CharacterQuery: EntityQuery {
    func entities(for identifiers: [CharacterDetail.ID]) async throws -> [CharacterDetail] {
        CharacterDetail.allCharacters.filter { identifiers.contains($0.id) }
    }
    
    func suggestedEntities() async throws -> [CharacterDetail] {
        CharacterDetail.allCharacters.filter { $0.isAvailable }
    }
    
    func defaultResult() async -> CharacterDetail? {
        try? await suggestedEntities().first
    }
}

// MARK: Sample 5
struct CharacterDetailWidget: Widget {
    var body: some WidgetConfiguration {
        AppIntentConfiguration(
            kind: kind,
            intent: SelectCharacterIntent.self,
            provider: CharacterDetailProvider()) { entry in
            CharacterDetailView(entry: entry)
        }
        .configurationDisplayName("Character Details")
        .description("Displays a character's health and other details")
        .supportedFamilies([.systemSmall, .systemMedium, .systemLarge])
    }
}

extension CharacterDetailWidget {
    var kind: String { "com.mygame.character-detail" }
}

struct CharacterDetailView: View {
    var entry: CharacterDetailEntry

    var body: some View { Text(entry.detail.avatar) }
}

// MARK: Sample 6
struct CharacterDetailProvider: AppIntentTimelineProvider {
    func timeline(for configuration: SelectCharacterIntent, in context: Context) async -> Timeline<CharacterDetailEntry> {
        // Create the timeline and return it. The .never reload policy indicates
        // that the containing app uses WidgetCenter methods to reload the
        // widget's timeline when the details change.
        let entry = CharacterDetailEntry(date: Date(), detail: configuration.character)
        let timeline = Timeline(entries: [entry], policy: .never)
        return timeline
    }
}

struct CharacterDetailEntry: TimelineEntry {
    var date: Date
    var detail: CharacterDetail
}

extension CharacterDetailProvider {
    func placeholder(in context: Context) -> CharacterDetailEntry {
        CharacterDetailEntry(date: .distantPast, detail: CharacterDetail.allCharacters[0])
    }

    func snapshot(for configuration: SelectCharacterIntent, in context: Context) async -> CharacterDetailEntry {
        CharacterDetailEntry(
            date: .distantPast,
            detail: context.isPreview ? CharacterDetail.allCharacters[1] : configuration.character)
    }

    func recommendations() -> [AppIntentRecommendation<SelectCharacterIntent>] {
        CharacterDetail.allCharacters.map {
            AppIntentRecommendation(
                intent: SelectCharacterIntent(character: $0), description: Text($0.avatar))
        }
    }
}
