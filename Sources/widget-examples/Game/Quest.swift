import TimelineRuntime

/// A task for today.
struct Quest: AppEntity, Codable {
    let id: String
    let title: String
    var isDone: Bool

    static let typeDisplayRepresentation: TypeDisplayRepresentation = "Quest"
    static let defaultQuery = QuestQuery()

    var displayRepresentation: DisplayRepresentation { "\(title)" }
}

/// Finds quests in the device's own data.
struct QuestQuery: EnumerableEntityQuery {
    func allEntities() async throws -> [Quest] { Installation.current.store.quests }
}

/// Marks a quest as done or not done, without opening the app.
struct ToggleQuest: AppIntent {
    static let title: LocalizedStringResource = "Mark a Quest"
    static let description = IntentDescription("Says whether a quest is done.")

    @Parameter(title: "Quest") var quest: Quest

    init() {}

    init(_ quest: Quest) { self.quest = quest }

    func perform() async throws -> some IntentResult {
        let (api, store) = (Installation.current.api, Installation.current.store)
        store.setQuest(quest.id, isDone: !quest.isDone)
        do {
            try await api.setQuest(quest.id, isDone: !quest.isDone)
            store.failedQuest = nil
        } catch {
            // The intent has no caller that handles errors, so the widget shows the failure and the
            // actual state.
            store.setQuest(quest.id, isDone: quest.isDone)
            store.failedQuest = quest.id
        }
        return .result()
    }
}
