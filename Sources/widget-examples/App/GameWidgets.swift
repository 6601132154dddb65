import TimelineRuntime

/// The widgets of the game's extension.
struct GameWidgets: WidgetBundle {
    var body: some Widget {
        CharacterWidget()
        TurnWidget()
        QuestsWidget()
    }
}
