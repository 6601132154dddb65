import TimelineClient

/// The widgets of the game's extension.
struct GameWidgets: WidgetBundle {
    var body: [any Widget] {
        CharacterWidget()
        TurnWidget()
        QuestsWidget()
    }

    /// What the buttons and toggles of these widgets perform.
    static let intents: [any AppIntent.Type] = [SuperchargeParty.self, ToggleQuest.self]
}
