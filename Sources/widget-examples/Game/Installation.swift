/// The shared objects of one installation of the app on a device; its code accesses them through
/// ``current``.
///
/// On a real device the app and its widget extension are separate processes, and these would be
/// their shared objects. Here one process simulates several devices, and each runs its code with
/// its own installation.
struct Installation: Sendable {
    /// The installation's connection to the game's server.
    var api: GameAPI
    /// The data that this installation stores on its device.
    let store: GameStore

    @TaskLocal static var running: Installation?

    /// The installation that runs the current code.
    static var current: Installation {
        guard let running else { preconditionFailure("the app's code runs in an installation") }
        return running
    }
}

/// The app's requests to the game's server, for the signed-in person.
struct GameAPI: Sendable {
    private let server: GameServer
    private let account: String
    /// Called while a change is in flight to the server.
    var beforeChange: @Sendable () async -> Void = {}

    init(server: GameServer, account: String) {
        self.server = server
        self.account = account
    }

    func characters() async throws -> [GameCharacter] { server.characters }

    /// Returns the current turn of the account's game.
    func turn() async throws -> Int { server.turn(of: account) }

    /// Returns the account's quests for today.
    func quests() async throws -> [Quest] { server.quests(of: account) }

    /// Sets whether a quest is done. Throws ``GameServer/Unavailable`` if the server accepts no
    /// changes.
    func setQuest(_ id: String, isDone: Bool) async throws {
        await beforeChange()
        try await server.setQuest(id, isDone: isDone, of: account)
    }

    /// Gives every character its full health.
    func healEverybody() async throws {
        await beforeChange()
        try await server.healEverybody()
    }
}
