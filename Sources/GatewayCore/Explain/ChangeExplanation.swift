import WidgetModel

/// Why a change hits what it hits: what each rule of a catalog says of it.
package struct ChangeExplanation: Sendable {
    /// A rule, and what it says.
    package struct Considered: Sendable {
        /// Its slot.
        package let slot: Int
        /// The rule.
        package let rule: Rule
        /// Whether, and why not, it is hit.
        package let verdict: Rule.Verdict
        /// The keys that the change raises by it, in their order.
        package let keys: [BoundValues]
        /// Whether it is hit for lack of an attribute.
        package let isBroad: Bool
    }

    /// The rules of the change's entity, in the catalog's order.
    package let rules: [Considered]
    /// How many rules are about other entities.
    package let otherRules: Int
    /// All that is raised, as ``RuleSet/decide(_:limits:)`` has it.
    package let decision: RuleSet.Decision
}

extension RuleSet {
    /// Decides a change as ``decide(_:limits:)`` does, and keeps why.
    ///
    /// - Throws: ``TooManyKeys`` where that does.
    package func explain(
        _ change: Change, limits: Limits
    ) throws(TooManyKeys) -> ChangeExplanation {
        var considered: [ChangeExplanation.Considered] = []
        let decision = try decide(change, limits: limits)
        for slot in slots(ofEntity: change.entity) {
            let rule = rules[slot]
            let verdict = rule.verdict(onOwnEntity: change)
            var (keys, isBroad) = (RaisedKeys(), false)
            if case .hit = verdict {
                try rule.raise(change, slot: slot, limits, &isBroad, &keys)
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

    /// Where the catalog declares a rule, as `widgets[0].dependsOn[1]`; of rules that it repeats,
    /// the first.
    package func place(of rule: Rule) -> String {
        guard let index = catalog.widgets.firstIndex(where: { $0.kind == rule.kind }) else {
            return "widgets"
        }
        let widget = catalog.widgets[index]
        let isSet = rule.target == .recommendations
        let declared = isSet ? widget.recommendations ?? [] : widget.dependsOn
        let place = "widgets[\(index)]" + (isSet ? ".recommendations" : "") + ".dependsOn"
        return declared.firstIndex(of: rule.declaration).map { "\(place)[\($0)]" } ?? place
    }
}

extension Rule {
    /// What a key has at each of the rule's bindings.
    package func bound(
        _ values: BoundValues
    ) -> [(binding: Binding, position: BoundValues.Position)] {
        zip(bindings, values.positions).map { ($0, $1) }
    }
}

extension Rule.Binding {
    /// The client's side as the catalog writes it: `$character`, `$client.account`.
    package var sourceText: String {
        switch source {
        case .parameter(let name, _): "$" + name
        case .clientAttribute(let name): "$client." + name
        }
    }
}
