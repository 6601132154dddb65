import Foundation
import TimelineClient

/// A character of the game: what a person may choose for a widget.
struct GameCharacter: AppEntity, Codable {
    let id: String
    let name: String
    let avatar: String
    var health: Double
    var role: String
    /// Whether new widgets may be made for it; those that were made before go on.
    var isAvailable = true

    static let typeDisplayRepresentation: TypeDisplayRepresentation = "Character"
    static let defaultQuery = GameCharacterQuery()

    var displayRepresentation: DisplayRepresentation {
        DisplayRepresentation(title: "\(avatar) \(name)", subtitle: "\(role)")
    }

    /// For pictures of the widget that are of nobody in particular.
    static let sample = GameCharacter(
        id: "sample", name: "Your hero", avatar: "🙂", health: 0.75, role: "Hero")
}

/// Finds characters: those that placed widgets were configured with, and those to choose from.
struct GameCharacterQuery: EntityStringQuery {
    func entities(for identifiers: [GameCharacter.ID]) async throws -> [GameCharacter] {
        try await Installation.current.api.characters().filter { identifiers.contains($0.id) }
    }

    func entities(matching string: String) async throws -> [GameCharacter] {
        try await suggestedEntities().filter { $0.name.localizedStandardContains(string) }
    }

    func suggestedEntities() async throws -> [GameCharacter] {
        try await Installation.current.api.characters().filter(\.isAvailable)
    }

    func defaultResult() async -> GameCharacter? { try? await suggestedEntities().first }
}

/// What a person chooses about the widget of a character. The parameter is called as in the catalog.
struct ChooseCharacter: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Choose a Character"
    static let description = IntentDescription("The widget shows how this character fares.")

    @Parameter(title: "Character") var character: GameCharacter

    init() {}

    init(character: GameCharacter) { self.character = character }
}
