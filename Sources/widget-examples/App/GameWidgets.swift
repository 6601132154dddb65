import TimelineClient

/// The widgets of the game's extension.
struct GameWidgets: WidgetBundle {
    var body: [any Widget] {
        CharacterWidget()
        TurnWidget()
        QuestsWidget()
    }

    /// The intents of the buttons and toggles in these widgets.
    static let intents: [any AppIntent.Type] = [SuperchargeParty.self, ToggleQuest.self]
}
