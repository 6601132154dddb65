import Synchronization
import WidgetModel

/// The game's server: stores the game's data, and reports changes to the gateway.
///
/// It knows nothing about widgets. A change is posted once clients can read the new data.
final class GameServer: Sendable {
    /// The error while the server accepts no changes.
    struct Unavailable: Error {}

    private struct State {
        var characters: [GameCharacter] = [
            GameCharacter(
                id: "bramble", name: "Bramble", avatar: "🦔", health: 0.25, role: "Scout"),
            GameCharacter(
                id: "marlin", name: "Marlin", avatar: "🐟", health: 0.6, role: "Navigator"),
            GameCharacter(
                id: "juniper", name: "Juniper", avatar: "🦊", health: 0.85, role: "Bard"),
        ]
        var turns: [String: Int] = [:]
        var quests: [String: [Quest]] = [:]
        var takesChanges = true
    }

    private let state = Mutex(State())
    private let post: @Sendable (Change) async throws -> Void

    /// `post` posts a change to the gateway; it returns when the gateway has committed the change.
    init(post: @escaping @Sendable (Change) async throws -> Void) { self.post = post }

    // MARK: What clients ask for

    var characters: [GameCharacter] { state.withLock { $0.characters } }

    func turn(of account: String) -> Int { state.withLock { $0.turns[account] ?? 1 } }

    func quests(of account: String) -> [Quest] {
        state.withLock { $0.quests[account] ?? Self.questsOfToday }
    }

    /// - Throws: ``Unavailable``, or the error of posting.
    func setQuest(_ id: String, isDone: Bool, of account: String) async throws {
        try state.withLock { state in
            guard state.takesChanges else { throw Unavailable() }
            var quests = state.quests[account] ?? Self.questsOfToday
            for index in quests.indices where quests[index].id == id {
                quests[index].isDone = isDone
            }
            state.quests[account] = quests
        }
        try await post(
            Change(
                entity: "Quest", id: id, properties: ["isDone"],
                attributes: ["account": [account]], urgency: .high))
    }

    /// - Throws: ``Unavailable``, or the error of posting.
    func healEverybody() async throws {
        try state.withLock { state in
            guard state.takesChanges else { throw Unavailable() }
            for index in state.characters.indices { state.characters[index].health = 1 }
        }
        // A single change without an id covers all characters.
        try await post(Change(entity: "CharacterDetail", properties: ["healthLevel"]))
    }

    // MARK: What happens in the game

    /// - Throws: The error of posting, like the methods below.
    func setHealth(_ health: Double, of id: String) async throws {
        change(id) { $0.health = health }
        try await post(
            Change(entity: "CharacterDetail", id: id, properties: ["healthLevel"]))
    }

    func setRole(_ role: String, of id: String) async throws {
        change(id) { $0.role = role }
        try await post(Change(entity: "CharacterDetail", id: id, properties: ["heroType"]))
    }

    func add(_ character: GameCharacter) async throws {
        state.withLock { $0.characters.append(character) }
        try await post(
            Change(entity: "CharacterDetail", id: character.id, operation: .insert))
    }

    func nextTurn(of account: String) async throws {
        state.withLock { $0.turns[account, default: 1] += 1 }
        try await post(
            Change(entity: "GameStatus", properties: ["turn"], attributes: ["account": [account]]))
    }

    /// Whether clients' changes are taken.
    func setTakesChanges(_ takesChanges: Bool) {
        state.withLock { $0.takesChanges = takesChanges }
    }

    private func change(_ id: String, _ change: (inout GameCharacter) -> Void) {
        state.withLock { state in
            for index in state.characters.indices where state.characters[index].id == id {
                change(&state.characters[index])
            }
        }
    }

    private static let questsOfToday = [
        Quest(id: "berries", title: "Gather berries", isDone: false),
        Quest(id: "bridge", title: "Mend the bridge", isDone: false),
    ]
}
