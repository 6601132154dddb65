import TimelineRuntime

/// Heals all characters without opening the app.
struct SuperchargeParty: AppIntent {
    static let title: LocalizedStringResource = "Heal the Party"
    static let description = IntentDescription("Gives every character its full health.")

    func perform() async throws -> some IntentResult {
        // When this returns, the timeline is rebuilt from the server's data, so the server must
        // have the change by then. A failure needs no message: the widget continues to show the
        // characters' current health.
        try? await Installation.current.api.healEverybody()
        return .result()
    }
}
