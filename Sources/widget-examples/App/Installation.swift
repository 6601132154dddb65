/// One installation of the app on a device: what its code reaches through ``current``.
///
/// On a device the app and its widget extension are processes of their own and these would be their
/// shared objects. Here one process plays several devices, so each runs its code with its own.
struct Installation: Sendable {
    /// The game's server, as this installation reaches it.
    var api: GameAPI
    /// What this installation keeps on its device.
    let store: GameStore

    @TaskLocal static var running: Installation?

    /// The installation whose code this is.
    static var current: Installation {
        guard let running else { preconditionFailure("the app's code runs in an installation") }
        return running
    }
}

/// The requests the app makes of the game's server, for the person who is signed in.
struct GameAPI: Sendable {
    private let server: GameServer
    private let account: String
    /// Called while a change is on its way to the server.
    var beforeChange: @Sendable () async -> Void = {}

    /// Requests for one account.
    init(server: GameServer, account: String) {
        self.server = server
        self.account = account
    }

    /// Every character.
    func characters() async throws -> [GameCharacter] { server.characters }

    /// The turn that the account's game is at.
    func turn() async throws -> Int { server.turn(of: account) }

    /// The account's quests of today.
    func quests() async throws -> [Quest] { server.quests(of: account) }

    /// Says whether a quest is done.
    ///
    /// - Throws: ``GameServer/Unavailable`` when the server does not take it.
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
