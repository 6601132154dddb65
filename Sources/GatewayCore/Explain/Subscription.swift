import WidgetModel

/// A subscription: a registered item that can become stale.
package struct Subscription: Sendable, Hashable {
    /// The position of a subscription in the registration.
    package enum Place: Sendable, Hashable {
        /// A configured widget, by its index.
        case widget(Int)
        /// A recommendation set, by its index.
        case recommendations(Int)
        /// A placed control, by its index.
        case control(Int)
        /// A Live Activity, by its index.
        case activity(Int)
    }

    /// The position in the registration.
    package let place: Place
    /// The widget or control kind, or the type of the activity.
    package let kind: String
    /// The number of identical items: a widget may be placed several times with one configuration.
    package let count: Int

    /// Whether the item is a recommendation set.
    package var isSet: Bool {
        if case .recommendations = place { true } else { false }
    }
}

extension RuleSet {
    /// Calls `body` with each item of a registration that the catalog declares, and with the rules
    /// of its kind. Omits items of undeclared kinds and empty recommendation sets.
    package func visitItems(
        of registration: ClientRegistration,
        _ body: (Subscription, KindRules, _ parameters: [[String: ParameterValue]]) -> Void
    ) {
        for (index, widget) in registration.widgets.enumerated() {
            guard let rules = rules(ofKind: widget.kind), rules.target.isWidget else { continue }
            body(
                Subscription(place: .widget(index), kind: widget.kind, count: widget.count), rules,
                [widget.parameters])
        }
        for (index, set) in registration.recommendations.enumerated() where !set.items.isEmpty {
            guard let rules = rules(ofKind: set.kind), rules.target != .activity else { continue }
            body(
                Subscription(place: .recommendations(index), kind: set.kind, count: 1), rules,
                set.items.map(\.parameters))
        }
        for (index, control) in registration.controls.enumerated() {
            guard let rules = rules(ofKind: control.kind), rules.target == .control else {
                continue
            }
            body(
                Subscription(place: .control(index), kind: control.kind, count: 1), rules,
                [control.parameters])
        }
        for (index, activity) in registration.activities.enumerated() {
            guard let rules = rules(ofKind: activity.type), rules.target == .activity else {
                continue
            }
            body(
                Subscription(place: .activity(index), kind: activity.type, count: 1), rules,
                [activity.attributes])
        }
    }
}
