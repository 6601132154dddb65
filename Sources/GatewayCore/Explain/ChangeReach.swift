import WidgetModel

/// Finds the clients that some changes affect: for one registration after another, the
/// subscriptions that depend on the bumped keys.
///
/// The cost of a registration depends on the rules that were hit for its kinds, not on the number
/// of changes; a registration without such a kind costs only a check of its kinds.
package struct ChangeReach: Sendable {
    /// A subscription of a client that a change makes stale.
    package struct Hold: Sendable {
        /// The index of the change.
        package let change: Int
        package let item: Subscription
        /// The hashes of the bumped keys that affect it, each once.
        package let keys: [UInt64]
    }

    private struct Raised: Sendable {
        let change: Int
        let slot: Int
        let values: BoundValues
    }

    /// The rule set that decided the changes.
    package let ruleSet: RuleSet
    private var raised: [UInt64: [Raised]] = [:]
    /// The slots that were hit, by kind; the value is whether a key lacks an attribute.
    private var slots: [String: [Int: Bool]] = [:]

    /// Creates an instance for changes decided by `ruleSet`, given by the keys they bump.
    package init(_ changes: [InvalidatedKeys], by ruleSet: RuleSet) {
        self.ruleSet = ruleSet
        for (change, keys) in changes.enumerated() {
            for key in keys {
                raised[key.values.hash, default: []].append(
                    Raised(change: change, slot: key.rule, values: key.values))
                let kind = ruleSet.rules[key.rule].kind
                let isBroad = slots[kind]?[key.rule] ?? false
                slots[kind, default: [:]][key.rule] = isBroad || key.values.isBroad
            }
        }
    }

    /// Whether the changes affect no subscription.
    package var isEmpty: Bool { raised.isEmpty }

    /// Returns the subscriptions of a client that the changes make stale.
    package func holds(of record: ClientRecord) -> [Hold] {
        let registration = record.registration
        guard
            registration.widgets.contains(where: { slots[$0.kind] != nil })
                || registration.recommendations.contains(where: { slots[$0.kind] != nil })
                || registration.controls.contains(where: { slots[$0.kind] != nil })
                || registration.activities.contains(where: { slots[$0.type] != nil })
        else { return [] }
        var holds: [Hold] = []
        var hits: [(change: Int, key: UInt64)] = []
        ruleSet.visitItems(of: registration) { item, rules, parameters in
            guard let hit = slots[rules.kind] else { return }
            hits.removeAll(keepingCapacity: true)
            for (slot, isBroad) in hit {
                let rule = ruleSet.rules[slot]
                guard (rule.target == .recommendations) == item.isSet else { continue }
                for parameters in parameters {
                    rule.visitKeys(parameters: parameters, attributes: record.attributes) {
                        visitHits(of: $0, rule: rule, slot: slot, isBroad: isBroad) {
                            hits.append($0)
                        }
                    }
                }
            }
            add(item, hits, to: &holds)
        }
        return holds
    }

    private func visitHits(
        of values: BoundValues, rule: Rule, slot: Int, isBroad: Bool,
        _ body: ((change: Int, key: UInt64)) -> Void
    ) {
        func look(_ hash: UInt64) {
            for raised in raised[hash] ?? []
            where raised.slot == slot && values.agrees(withBroad: raised.values) {
                body((raised.change, hash))
            }
        }
        if isBroad { rule.visitHashes(reaching: values, look) } else { look(values.hash) }
    }

    private func add(
        _ item: Subscription, _ hits: [(change: Int, key: UInt64)], to holds: inout [Hold]
    ) {
        guard let first = hits.first else { return }
        guard hits.count > 1 else {
            holds.append(Hold(change: first.change, item: item, keys: [first.key]))
            return
        }
        let byChange = Dictionary(grouping: hits, by: \.change)
        for (change, hits) in byChange.sorted(by: { $0.key < $1.key }) {
            holds.append(
                Hold(change: change, item: item, keys: Set(hits.map(\.key)).sorted()))
        }
    }
}
