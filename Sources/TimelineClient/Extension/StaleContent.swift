import WidgetModel

/// The content that a gateway reports as stale, grouped by kind as a system's reload API requires.
public struct StaleContent: Sendable, Hashable {
    /// Whether everything is stale. The sets are then irrelevant.
    public var all = false
    /// The kinds with at least one stale timeline.
    public var timelines: Set<String> = []
    /// The kinds whose recommendations are stale.
    public var recommendations: Set<String> = []
    /// The kinds whose relevance is stale.
    public var relevance: Set<String> = []
    /// The kinds of controls that are stale.
    public var controls: Set<String> = []

    /// Creates a value in which nothing is stale.
    public init() {}

    /// Creates the union of the stale content in notifications.
    public init(_ notifications: [ReloadNotification]) {
        for notification in notifications {
            all = all || notification.all
            timelines.formUnion(notification.reload.map(\.kind))
            recommendations.formUnion(notification.recommendations)
            relevance.formUnion(notification.relevance)
            controls.formUnion(notification.controls)
        }
    }

    /// Whether nothing is stale.
    public var isEmpty: Bool { self == StaleContent() }
}
