import WidgetModel

/// What a gateway says is stale, in the terms in which a system is told: by kind.
public struct StaleContent: Sendable, Hashable {
    /// Everything is stale; the sets say nothing then.
    public var all = false
    /// Kinds of which some timelines are stale.
    public var timelines: Set<String> = []
    /// Kinds whose recommendations are stale.
    public var recommendations: Set<String> = []
    /// Kinds whose relevance is stale.
    public var relevance: Set<String> = []
    /// Kinds of controls that are stale.
    public var controls: Set<String> = []

    /// Nothing is stale.
    public init() {}

    /// What notifications say together.
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
