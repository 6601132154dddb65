import Synchronization

/// The app's data on the device, shared with its widget extension.
final class GameStore: Sendable {
    private struct State {
        var quests: [Quest] = []
        var failedQuest: String?
    }

    private let state = Mutex(State())

    /// The quests as last received from the server, or as the person has just changed them.
    var quests: [Quest] {
        get { state.withLock { $0.quests } }
        set { state.withLock { $0.quests = newValue } }
    }

    /// The quest whose last change the server rejected; `nil` if it accepted it.
    var failedQuest: String? {
        get { state.withLock { $0.failedQuest } }
        set { state.withLock { $0.failedQuest = newValue } }
    }

    func setQuest(_ id: String, isDone: Bool) {
        state.withLock { state in
            for index in state.quests.indices where state.quests[index].id == id {
                state.quests[index].isDone = isDone
            }
        }
    }
}
