import WidgetModel

/// One thing that a client registered and that can become stale.
package struct HeldItem: Sendable, Hashable {
    /// Which of them.
    package enum Place: Sendable, Hashable {
        /// A configured widget, by its place in the registration.
        case widget(Int)
        /// A recommendation set, by its place.
        case recommendations(Int)
        /// A placed control, by its place.
        case control(Int)
    }

    /// Which.
    package let place: Place
    /// Its kind.
    package let kind: String
    /// How many there are of it: a widget may be placed several times with one configuration.
    package let count: Int

    /// What of the client is pushed for, where it has addresses of its own for it.
    package func sort(in registration: ClientRegistration) -> PushSort {
        switch place {
        case .widget: .timelines
        case .recommendations: .recommendations
        case .control(let index):
            .control(
                id: registration.controls.indices.contains(index)
                    ? registration.controls[index].id : "")
        }
    }

    /// Whether it is a recommendation set.
    package var isSet: Bool {
        if case .recommendations = place { true } else { false }
    }
}

extension RuleSet {
    /// Calls `body` with everything of a registration that its catalog declares, and with the kind's
    /// rules; what sleeps is left out, and so are empty recommendation sets.
    func visitItems(
        of registration: ClientRegistration,
        _ body: (HeldItem, KindRules, _ parameters: [[String: ParameterValue]]) -> Void
    ) {
        for (index, widget) in registration.widgets.enumerated() {
            guard let rules = rules(ofKind: widget.kind), rules.target != .control else { continue }
            body(
                HeldItem(place: .widget(index), kind: widget.kind, count: widget.count), rules,
                [widget.parameters])
        }
        for (index, set) in registration.recommendations.enumerated() where !set.items.isEmpty {
            guard let rules = rules(ofKind: set.kind) else { continue }
            body(
                HeldItem(place: .recommendations(index), kind: set.kind, count: 1), rules,
                set.items.map(\.parameters))
        }
        for (index, control) in registration.controls.enumerated() {
            guard let rules = rules(ofKind: control.kind), rules.target == .control else {
                continue
            }
            body(
                HeldItem(place: .control(index), kind: control.kind, count: 1), rules,
                [control.parameters])
        }
    }
}

extension HeldItem {
    /// By which address it is pushed for first, as registered; `nil` where it is not.
    package func pushChannel(in registration: ClientRegistration) -> Outcome.Channel? {
        guard
            registration.delivery.count > 1 || registration.delivery.first != .stream
                || registration.controls.contains(where: { $0.delivery != nil })
        else { return nil }
        let own = sort(in: registration)
        let sorts = PushSort.all(of: registration)
        let sort = sorts.first { $0.sort == own } ?? sorts.first { $0.sort == .everything }
        return sort?.addresses.first.flatMap { Outcome.Channel($0) }
    }
}

extension Outcome.Channel {
    /// How an address is pushed to; `nil` for streams, which are not.
    package init?(_ address: DeliveryAddress) {
        switch address {
        case .stream: return nil
        case .webhook: self = .webhook
        case .apns(let apns):
            switch PushBudget.Channel(pushType: apns.pushType) {
            case .widgets: self = .widgets
            case .controls: self = .controls
            case .background: self = .background
            }
        }
    }
}
