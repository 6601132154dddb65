import Foundation
import TimelineRuntime

/// A character of the game, which a person can choose for a widget.
struct GameCharacter: AppEntity, Codable {
    let id: String
    let name: String
    let avatar: String
    var health: Double
    var role: String
    /// Whether the character is offered for new widgets; existing widgets keep it.
    var isAvailable = true

    static let typeDisplayRepresentation: TypeDisplayRepresentation = "Character"
    static let defaultQuery = GameCharacterQuery()

    var displayRepresentation: DisplayRepresentation {
        DisplayRepresentation(title: "\(avatar) \(name)", subtitle: "\(role)")
    }

    static let sample = GameCharacter(
        id: "sample", name: "Your hero", avatar: "🙂", health: 0.75, role: "Hero")
}

/// Finds characters: those of configured widgets, and those to choose from.
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

/// The configuration of a character widget. The parameter has the same name as in the catalog.
struct ChooseCharacter: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Choose a Character"
    static let description = IntentDescription("The widget shows how this character fares.")

    @Parameter(title: "Character") var character: GameCharacter

    init() {}

    init(character: GameCharacter) { self.character = character }
}
