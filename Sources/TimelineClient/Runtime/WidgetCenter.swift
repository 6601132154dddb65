/// The calls an app makes when it knows itself that widgets are stale, or which there are.
///
/// As in WidgetKit the reloads return at once and promise no moment; the runtime does them when
/// it runs, and those requested while it does not are forgotten (it rebuilds what is stale when
/// it starts).
public struct WidgetCenter: Sendable {
    let client: TimelineClient

    /// Rebuilds the timelines of every widget of one kind.
    public func reloadTimelines(ofKind kind: String) {
        client.request(.reloadRequested(.kind(kind), .app))
    }

    /// Rebuilds the timelines of every widget.
    public func reloadAllTimelines() {
        client.request(.reloadRequested(.all, .app))
    }

    /// Asks every provider for its recommendations again, and registers those that changed.
    public func invalidateConfigurationRecommendations() {
        client.request(.recommendationsInvalidated)
    }

    /// The widgets that are placed; those configured alike as often as they are placed.
    public func currentConfigurations() async -> [WidgetInfo] {
        await client.placedWidgets
    }
}
