import WidgetModel

/// A catalog compiled for deciding. Immutable; every shard reads the same one.
package final class RuleSet: Sendable {
    /// The catalog.
    package let catalog: Catalog
    /// The sequence of the log entry that put it in force.
    package let sequence: UInt64
    /// Every rule; a rule's place here is its slot in the live index of this rule set.
    package let rules: [Rule]

    /// When each kind was first declared, without interruption since.
    private let kindSince: [String: UInt64]
    private let slotsByEntity: [String: [Int]]
    private let slotsByKind: [String: [Int]]
    private let configurationByKind: [String: WidgetConfigurationType]
    private let hash: SipHash

    /// Compiles a catalog that the entry at `sequence` put in force, replacing `previous`.
    package init(_ catalog: Catalog, sequence: UInt64, replacing previous: RuleSet?, hash: SipHash)
    {
        self.catalog = catalog
        self.sequence = sequence
        self.hash = hash
        var known: [String: UInt64] = [:]
        for rule in previous?.rules ?? [] { known[rule.identity] = rule.since }
        var rules: [Rule] = []
        var identities: Set<String> = []
        var kindSince: [String: UInt64] = [:]
        var configurations: [String: WidgetConfigurationType] = [:]
        for widget in catalog.widgets {
            kindSince[widget.kind] = previous?.kindSince[widget.kind] ?? sequence
            configurations[widget.kind] = widget.configuration
            let intent = catalog.intent(of: widget)
            func add(_ declarations: [DependencyRule], _ target: Target) {
                for declaration in declarations {
                    let fresh = Rule(
                        declaration, target: target, widget: widget, intent: intent,
                        since: sequence, hash: hash)
                    guard identities.insert(fresh.identity).inserted else { continue }
                    rules.append(
                        Rule(
                            declaration, target: target, widget: widget, intent: intent,
                            since: known[fresh.identity] ?? sequence, hash: hash))
                }
            }
            add(widget.dependsOn, widget.configuration.target)
            add(widget.recommendations ?? [], .recommendations)
        }
        self.rules = rules
        self.kindSince = kindSince
        configurationByKind = configurations
        slotsByEntity = Dictionary(grouping: rules.indices) { rules[$0].declaration.entity }
        slotsByKind = Dictionary(grouping: rules.indices) { rules[$0].kind }
    }

    /// When `kind` was first declared, without interruption since; `nil` when it is not.
    package func since(kind: String) -> UInt64? {
        kindSince[kind]
    }

    /// What a change to one of `kind`'s widgets makes stale.
    package func target(ofKind kind: String) -> Target? {
        configurationByKind[kind]?.target
    }

    /// The slots of `kind`'s rules.
    package func slots(ofKind kind: String) -> [Int] {
        slotsByKind[kind] ?? []
    }

    /// The key every widget of a kind depends on, for operator reloads.
    package func operatorKey(kind: String) -> UInt64 {
        hash(1, hash(kind))
    }

    /// The key everything of the app depends on, for operator reloads.
    package var operatorKey: UInt64 {
        hash(0, hash(catalog.app))
    }

    /// What a change hits.
    package struct Decision: Sendable {
        /// The keys it raises.
        package var keys: [RaisedKey] = []
        /// Whether it hit a rule for lack of an attribute.
        package var isBroad = false
        /// Whether it hit no rule.
        package var isUnmatched: Bool { keys.isEmpty }
    }

    /// A key a change raises.
    package struct RaisedKey: Sendable {
        /// The slot of the rule it belongs to.
        package let rule: Int
        /// Its values.
        package let values: BoundValues
    }

    /// A change has more values at the positions of one rule than are allowed.
    package struct TooManyKeys: Error, Sendable, Equatable {
        /// How many there would be.
        package let count: Int
        /// The kind whose rule it is.
        package let kind: String
    }

    /// Decides a change: the same input gives the same decision, whoever asks and whenever.
    ///
    /// - Throws: ``TooManyKeys`` beyond `limits.changeRuleKeysMax` combinations for one rule.
    package func decide(_ change: Change, limits: Limits) throws(TooManyKeys) -> Decision {
        var decision = Decision()
        for slot in slotsByEntity[change.entity] ?? [] {
            let rule = rules[slot]
            guard rule.verdict(on: change) == .hit else { continue }
            let combinations = rule.combinations(of: change)
            guard combinations <= limits.changeRuleKeysMax else {
                throw TooManyKeys(count: combinations, kind: rule.kind)
            }
            if rule.isBroad(change) { decision.isBroad = true }
            for values in rule.keys(of: change) {
                decision.keys.append(RaisedKey(rule: slot, values: values))
            }
        }
        return decision
    }
}

extension WidgetConfigurationType {
    /// What a dependency of a kind with this configuration makes stale.
    var target: Target {
        switch self {
        case .static, .appIntent: .timeline
        case .relevance: .relevance
        case .control: .control
        }
    }
}
