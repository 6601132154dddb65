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

    /// Says that what is known of a kind's relevance is stale: its provider is asked for it again, soon
    /// and by itself, and the client's observer is told.
    public func invalidateRelevance(ofKind kind: String) {
        Task { await client.invalidateRelevance(ofKind: kind) }
    }

    /// Hands on what ``currentConfigurations()`` returns; there is no failure.
    public func getCurrentConfigurations(
        _ completion: @escaping @Sendable (Result<[WidgetInfo], any Error>) -> Void
    ) {
        Task { completion(.success(await currentConfigurations())) }
    }

    /// How the app's widgets are pushed to on this device; `nil` while there is no token.
    public var currentPushInfo: WidgetPushInfo? {
        get async { await client.currentPushInfo }
    }

    /// The widgets that are placed; those configured alike as often as they are placed, for nothing
    /// tells them apart.
    public func currentConfigurations() async -> [WidgetInfo] {
        await client.placedWidgets
    }
}
