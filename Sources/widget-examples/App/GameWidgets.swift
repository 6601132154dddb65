import TimelineRuntime

/// The widgets and the Live Activity of the game's extension.
struct GameWidgets: WidgetBundle {
    var body: some Widget {
        CharacterWidget()
        TurnWidget()
        QuestsWidget()
        BattleActivity()
    }
}
