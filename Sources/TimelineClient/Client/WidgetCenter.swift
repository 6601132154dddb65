/// The API for an app that knows itself which widgets are stale.
///
/// As in WidgetKit, reload requests return at once and promise no time. They are carried out while
/// the client runs; requests made while it does not run are dropped, because it rebuilds stale
/// timelines when it starts.
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

    /// Marks the relevance of a kind as stale. The client asks its provider for it again soon, and
    /// reports the event to its observer.
    public func invalidateRelevance(ofKind kind: String) {
        Task { await client.invalidateRelevance(ofKind: kind) }
    }

    /// Calls `completion` with the result of ``currentConfigurations()``; it never fails.
    public func getCurrentConfigurations(
        _ completion: @escaping @Sendable (Result<[WidgetInfo], any Error>) -> Void
    ) {
        Task { completion(.success(await currentConfigurations())) }
    }

    /// The token for pushes to the app's widgets on this device; `nil` while there is none.
    public var currentPushInfo: WidgetPushInfo? {
        get async { await client.currentPushInfo }
    }

    /// The placed widgets. Widgets with equal configuration appear once for each time they are
    /// placed, because nothing tells them apart.
    public func currentConfigurations() async -> [WidgetInfo] {
        await client.placedWidgets
    }
}
