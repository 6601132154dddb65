import Foundation
import Synchronization
import TimelineClient

/// The server of the character game that the demonstration plays: what its clients fetch.
final class GameServer: Sendable {
    /// One character.
    struct Character: Sendable {
        let id: String
        let avatar: String
        var healthLevel: Double
        var heroType: String
    }

    private struct State {
        var characters: [Character] = [
            Character(
                id: "Power Panda", avatar: "🐼", healthLevel: 0.14, heroType: "Forest Dweller"),
            Character(id: "Unipony", avatar: "🦄", healthLevel: 0.67, heroType: "Free Rangers"),
            Character(id: "Spouty", avatar: "🐳", healthLevel: 0.83, heroType: "Deep Sea Goer"),
        ]
        var turn = 1
    }

    private let state = Mutex(State())

    /// All characters.
    var characters: [Character] { state.withLock { $0.characters } }
    /// The turn the game is at.
    var turn: Int { state.withLock { $0.turn } }

    func character(_ id: String) -> Character? {
        state.withLock { $0.characters.first { $0.id == id } }
    }

    func set(health: Double, of id: String?) {
        state.withLock { state in
            for index in state.characters.indices
            where id == nil || state.characters[index].id == id {
                state.characters[index].healthLevel = health
            }
        }
    }

    func set(heroType: String, of id: String) {
        state.withLock { state in
            for index in state.characters.indices where state.characters[index].id == id {
                state.characters[index].heroType = heroType
            }
        }
    }

    func add(_ character: Character) {
        state.withLock { $0.characters.append(character) }
    }

    func nextTurn() {
        state.withLock { $0.turn += 1 }
    }
}

/// A line of text at a date: what a terminal can show of a widget.
struct LineEntry: TimelineEntry, Codable {
    let date: Date
    let line: String
}

/// Which character a widget shows.
struct SelectCharacterIntent: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Select Character"

    @Parameter(title: "Character") var character: String?

    init() {}

    init(character: String?) {
        self.character = character
    }
}

/// Builds the timelines of the character widget, and the watch's recommendations.
struct CharacterDetailProvider: AppIntentTimelineProvider {
    let server: GameServer
    let recommends: Bool

    func placeholder(in context: Context) -> LineEntry {
        LineEntry(date: .now, line: "…")
    }

    func snapshot(for configuration: SelectCharacterIntent, in context: Context) async -> LineEntry
    {
        entry(configuration)
    }

    func timeline(
        for configuration: SelectCharacterIntent, in context: Context
    ) async throws -> Timeline<LineEntry> {
        Timeline(entries: [entry(configuration)], policy: .never)
    }

    func recommendations() -> [AppIntentRecommendation<SelectCharacterIntent>] {
        guard recommends else { return [] }
        return server.characters.map {
            AppIntentRecommendation(
                intent: SelectCharacterIntent(character: $0.id),
                description: "\($0.avatar) \($0.id)")
        }
    }

    private func entry(_ configuration: SelectCharacterIntent) -> LineEntry {
        let character = configuration.character.flatMap(server.character)
        let line = character.map {
            "\($0.avatar) \($0.id), health \(Int(($0.healthLevel * 100).rounded())) %"
        }
        return LineEntry(date: .now, line: line ?? "no character")
    }
}

/// Builds the timelines of the widget that shows whose turn it is.
struct GameStatusProvider: AsyncTimelineProvider {
    let server: GameServer

    func placeholder(in context: Context) -> LineEntry { LineEntry(date: .now, line: "…") }

    func snapshot(in context: Context) async -> LineEntry { entry }

    func timeline(in context: Context) async throws -> Timeline<LineEntry> {
        Timeline(entries: [entry], policy: .never)
    }

    private var entry: LineEntry { LineEntry(date: .now, line: "turn \(server.turn)") }
}
