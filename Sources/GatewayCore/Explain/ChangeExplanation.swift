import CatalogModel
import WidgetModel

/// The reasons for a change's effect: the verdict of each rule of a catalog.
package struct ChangeExplanation: Sendable {
    /// A rule with its verdict.
    package struct Considered: Sendable {
        /// The slot of the rule.
        package let slot: Int
        package let rule: Rule
        /// The verdict: a hit, or the reason why not.
        package let verdict: Rule.Verdict
        /// The keys that the change bumps by this rule, in order.
        package let keys: [BoundValues]
        /// Whether the rule is hit because the change lacks an attribute.
        package let isBroad: Bool
    }

    /// The rules about the change's entity, in the catalog's order.
    package let rules: [Considered]
    /// The number of rules about other entities.
    package let otherRules: Int
    /// The complete decision, as ``RuleSet/decide(_:limits:)`` returns it.
    package let decision: RuleSet.Decision
}

extension RuleSet {
    /// Decides a change as ``decide(_:limits:)`` does, and records the reasons.
    ///
    /// - Throws: ``TooManyKeys`` in the same cases.
    package func explain(
        _ change: Change, limits: Limits
    ) throws(TooManyKeys) -> ChangeExplanation {
        var considered: [ChangeExplanation.Considered] = []
        let decision = try decide(change, limits: limits)
        for slot in slots(ofEntity: change.entity) {
            let rule = rules[slot]
            let verdict = rule.verdict(onOwnEntity: change)
            var (keys, isBroad) = (InvalidatedKeys(), false)
            if case .hit = verdict {
                try rule.raise(change, slot: slot, limits: limits, isBroad: &isBroad, into: &keys)
            }
            considered.append(
                .init(
                    slot: slot, rule: rule, verdict: verdict, keys: keys.map(\.values),
                    isBroad: isBroad))
        }
        return ChangeExplanation(
            rules: considered, otherRules: rules.count - considered.count,
            decision: decision)
    }

    /// Returns the path of a rule's declaration in the catalog, such as `widgets[0].dependsOn[1]`;
    /// the first one for a repeated rule.
    package func place(of rule: Rule) -> String {
        let place: String
        let declared: [DependencyRule]
        if let index = catalog.widgets.firstIndex(where: { $0.kind == rule.kind }) {
            let widget = catalog.widgets[index]
            let isSet = rule.target == .recommendations
            declared = isSet ? widget.recommendations ?? [] : widget.dependsOn
            place = "widgets[\(index)]" + (isSet ? ".recommendations" : "") + ".dependsOn"
        } else if let index = catalog.activities.firstIndex(where: { $0.type == rule.kind }) {
            declared = catalog.activities[index].dependsOn
            place = "activities[\(index)].dependsOn"
        } else {
            return "widgets"
        }
        return declared.firstIndex(of: rule.declaration).map { "\(place)[\($0)]" } ?? place
    }
}

extension Rule {
    /// Returns the position of a key for each of the rule's bindings.
    package func bound(
        _ values: BoundValues
    ) -> [(binding: Binding, position: BoundValues.Position)] {
        zip(bindings, values.positions).map { ($0, $1) }
    }
}

extension Rule.Binding {
    /// The client's side in the catalog's notation: `$character`, `$client.account`.
    package var sourceText: String {
        switch source {
        case .parameter(let name, _): "$" + name
        case .clientAttribute(let name): "$client." + name
        }
    }
}
