import WidgetModel

/// The content that a gateway reports as stale, grouped by kind as a system's reload API requires.
public struct StaleContent: Sendable, Hashable {
    /// Whether everything is stale. The sets then name every registered kind.
    public var all = false
    /// The kinds with at least one stale timeline.
    public var timelines: Set<String> = []
    /// The kinds whose recommendations are stale.
    public var recommendations: Set<String> = []
    /// The kinds whose relevance is stale.
    public var relevance: Set<String> = []
    /// The kinds of controls that are stale.
    public var controls: Set<String> = []
    /// The cursor up to which this is all that was stale. Content that is made after this value was
    /// received includes every change up to it, so it is the `builtAt` of a renewed
    /// `RecommendationSet`.
    public var cursor: Cursor?

    /// Creates a value in which nothing is stale.
    public init() {}

    /// Creates the union of the stale content in notifications. If everything is stale, so is every
    /// kind of `registration`, which is in force.
    init(_ notifications: [ReloadNotification], of registration: ClientRegistration?) {
        for notification in notifications {
            all = all || notification.all
            timelines.formUnion(notification.reload.map(\.kind))
            recommendations.formUnion(notification.recommendations)
            relevance.formUnion(notification.relevance)
            controls.formUnion(notification.controls)
        }
        guard all, let registration else { return }
        // Nothing tells a relevance widget from another one; and any widget may have relevance.
        let kinds = registration.widgets.map(\.kind)
        timelines.formUnion(kinds)
        relevance.formUnion(kinds)
        recommendations.formUnion(registration.recommendations.map(\.kind))
        controls.formUnion(registration.controls.map(\.kind))
    }

    /// Whether nothing is stale.
    public var isEmpty: Bool {
        !all && timelines.isEmpty && recommendations.isEmpty && relevance.isEmpty
            && controls.isEmpty
    }

    /// The part that the system makes without asking this client again: relevance and controls.
    var ofSystem: StaleContent {
        var content = StaleContent()
        (content.relevance, content.controls) = (relevance, controls)
        return content
    }
}
