/// The client attributes that the rules of a kind bind to: a client that lacks one depends on
/// nothing by that rule.
package struct AttributeNeeds: Sendable, Equatable {
    /// The attributes of each rule; empty for a rule that binds to none.
    private let rules: [Set<String>]

    init(_ rules: some Sequence<Rule>) {
        self.rules = rules.map { rule in
            rule.bindings.reduce(into: []) { names, binding in
                if case .clientAttribute(let name) = binding.source { names.insert(name) }
            }
        }
    }

    /// Whether each rule binds to an attribute, so that a client can lack all that matters.
    package var canLackAll: Bool { !rules.isEmpty && !rules.contains(where: \.isEmpty) }

    /// Returns whether a client lacks an attribute of every rule, so that no change makes its items
    /// of the kind stale.
    package func areLacking(in attributes: [String: [String]]) -> Bool {
        canLackAll
            && rules.allSatisfy { names in
                names.contains { attributes[$0]?.isEmpty ?? true }
            }
    }

    /// Returns the attributes that a client lacks, sorted by name.
    package func lacked(by attributes: [String: [String]]) -> [String] {
        rules.reduce(into: Set<String>()) { $0.formUnion($1) }
            .filter { attributes[$0]?.isEmpty ?? true }.sorted()
    }
}

extension RuleSet {
    /// Returns the client attributes that the rules in force of a kind bind to.
    ///
    /// - Parameter sets: `true` for rules of recommendation sets, `false` for all others.
    package func attributeNeeds(ofKind kind: String, sets: Bool) -> AttributeNeeds {
        AttributeNeeds(
            slots(ofKind: kind).lazy.map { self.rule($0) }.filter {
                ($0.target == .recommendations) == sets
            })
    }
}

extension RuleSet {
    /// Returns the number of a client's widgets, sets and controls that no change makes stale,
    /// because the client lacks an attribute of each rule.
    package func itemsWithoutDependency(in record: ClientRecord) -> Int {
        var count = 0
        var known: [Item: Bool] = [:]
        visitItems(of: record.registration) { item, _, _ in
            let name = Item(kind: item.kind, isSet: item.isSet)
            let isDeaf =
                known[name]
                ?? attributeNeeds(ofKind: item.kind, sets: item.isSet)
                .areLacking(in: record.attributes)
            known[name] = isDeaf
            if isDeaf { count += 1 }
        }
        return count
    }

    private struct Item: Hashable {
        let kind: String
        let isSet: Bool
    }
}
