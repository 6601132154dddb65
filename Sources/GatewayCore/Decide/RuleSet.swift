import CatalogModel
import WidgetModel

/// A catalog compiled for deciding. Immutable; all shards share it.
package final class RuleSet: Sendable {
    package let catalog: Catalog
    /// The sequence of the log entry that put it in force.
    package var sequence: UInt64 { position.sequence }
    private let position: CatalogPosition
    /// The rules; a rule's index is its slot in the live index of this rule set.
    package let rules: [Rule]
    /// The collapse time of each rule, ms, by its slot.
    let durations: [Int64]

    /// The rules of earlier catalogs that this one drops from kinds it keeps. New changes do not
    /// match them, but earlier matches are still owed to clients that were not notified of them.
    /// Their slots follow those of ``rules``.
    let retired: [Rule]
    /// The maximum number of a kind's retired rules; beyond it the kind counts as newly declared.
    static let kindRetiredRulesMax = 64

    /// The key that everything of the app depends on, for operator reloads.
    package let operatorKey: UInt64

    private let kinds: [String: KindRules]
    private let slotsByEntity: [String: [Int]]
    private let hash: SipHash

    /// Compiles a catalog that the entry at `sequence` put in force, replacing `previous`.
    package init(
        _ catalog: Catalog, sequence: UInt64, replacing previous: RuleSet?, hash: SipHash
    ) {
        let position = CatalogPosition(sequence)
        self.catalog = catalog
        self.hash = hash
        self.position = position
        // The catalogs that declared the rules of the previous one, by the rules' content.
        var declared: [[UInt8]: CatalogPosition] = [:]
        for rule in previous?.rules ?? [] { declared[rule.identity] = rule.declared }
        var rules: [Rule] = []
        var identities: Set<[UInt8]> = []
        var kindSince: [String: CatalogPosition] = [:]
        var targets: [(kind: String, target: Target)] = []
        func declare(
            _ kind: String, _ target: Target, intent: IntentDeclaration?, collapse: Int64,
            _ declarations: [DependencyRule], sets: [DependencyRule]
        ) {
            // A kind that becomes a control, or is no longer one, counts as a new kind.
            let isKept = previous?.target(ofKind: kind) == target
            kindSince[kind] = (isKept ? previous?.kinds[kind]?.declared : nil) ?? position
            targets.append((kind, target))
            func add(_ declarations: [DependencyRule], _ target: Target) {
                for declaration in declarations {
                    let identity = Rule.identity(
                        of: declaration, target: target, kind: kind, intent: intent)
                    guard identities.insert(identity).inserted else { continue }
                    rules.append(
                        Rule(
                            declaration, target: target, kind: kind, collapse: collapse,
                            intent: intent, identity: identity,
                            declared: declared[identity] ?? position, hash: hash))
                }
            }
            add(declarations, target)
            add(sets, .recommendations)
        }
        for widget in catalog.widgets {
            declare(
                widget.kind, widget.configuration.target, intent: catalog.intent(of: widget),
                collapse: widget.collapseMilliseconds, widget.dependsOn,
                sets: widget.recommendations ?? [])
        }
        for activity in catalog.activities {
            declare(
                activity.type, .activity, intent: activity.intent, collapse: 0, activity.dependsOn,
                sets: [])
        }
        var retired: [Rule] = []
        // The rules that are retired unless the catalog repeats them.
        let former = (previous?.rules ?? []) + (previous?.retired ?? [])
        let droppedByKind = Dictionary(grouping: former, by: \.kind)
        for (kind, rules) in droppedByKind.sorted(by: { $0.key < $1.key }) {
            guard let since = kindSince[kind], since !== position else { continue }
            let rules = rules.filter { !identities.contains($0.identity) }
            if rules.count <= Self.kindRetiredRulesMax {
                retired += rules
            } else {
                kindSince[kind] = position
            }
        }
        self.rules = rules
        durations = rules.map(\.collapse)
        self.retired = retired
        operatorKey = hash(0, hash(catalog.app))
        slotsByEntity = Dictionary(grouping: rules.indices) { rules[$0].declaration.entity }
        let slots = Dictionary(grouping: rules.indices) { rules[$0].kind }
        let retiredSlots = Dictionary(grouping: retired.indices) { retired[$0].kind }
        var kinds: [String: KindRules] = [:]
        for (kind, target) in targets {
            kinds[kind] = KindRules(
                kind: kind, target: target,
                declared: kindSince[kind] ?? position, slots: slots[kind] ?? [],
                retired: (retiredSlots[kind] ?? []).map { $0 + rules.count },
                operatorKey: hash(1, hash(kind))
            ) { $0 < rules.count ? rules[$0] : retired[$0 - rules.count] }
        }
        self.kinds = kinds
    }

    /// Records the sequence of the entry that puts the catalog in force, before its first decision.
    package func comeIntoForce(at sequence: UInt64) { position.sequence = sequence }

    /// Returns the rules of a declared kind; `nil` when it is not declared.
    func rules(ofKind kind: String) -> KindRules? {
        kinds[kind]
    }

    /// Returns the sequence at which `kind` was first declared, without interruption since; `nil`
    /// when it is not declared.
    package func since(kind: String) -> UInt64? {
        kinds[kind]?.since
    }

    /// Returns the declared kind that may be meant by a text that is none.
    package func nearestKind(to text: String) -> String? {
        text.nearest(of: kinds.keys.sorted())
    }

    /// Returns the content that a change to one of `kind`'s widgets, or activities, makes stale.
    package func target(ofKind kind: String) -> Target? {
        kinds[kind]?.target
    }

    /// Returns the slots of `kind`'s rules in force.
    package func slots(ofKind kind: String) -> ArraySlice<Int> {
        kinds[kind].map { $0.slots.prefix($0.slotsInForce) } ?? []
    }

    package func ruleCount(ofEntity entity: String) -> Int { slots(ofEntity: entity).count }

    /// Returns the slots of the rules about an entity.
    func slots(ofEntity entity: String) -> [Int] {
        slotsByEntity[entity] ?? []
    }

    /// Returns the rule in a slot, retired or not.
    package func rule(_ slot: Int) -> Rule {
        slot < rules.count ? rules[slot] : retired[slot - rules.count]
    }

    /// Returns the slot of the rule in force with the content and the collapse window of `rule`.
    func slot(of rule: Rule) -> Int? {
        slots(ofKind: rule.kind).first {
            rules[$0].identity == rule.identity && rules[$0].collapse == rule.collapse
        }
    }

    /// Returns the key that every widget of a kind depends on, for operator reloads.
    func operatorKey(kind: String) -> UInt64 {
        kinds[kind]?.operatorKey ?? hash(1, hash(kind))
    }

    /// Returns the key that everything of a client depends on, for operator reloads.
    func operatorKey(client: String) -> UInt64 { hash(2, hash(client)) }

    /// The effect of a change.
    package struct Decision: Sendable {
        /// The keys that it bumps.
        package internal(set) var keys = InvalidatedKeys()
        /// Whether the change hit a rule because it lacks an attribute.
        package internal(set) var isBroad = false
        /// Whether the change hit no rule.
        package var isUnmatched: Bool { keys.isEmpty }
    }

    /// The error for a change that bumps more keys than allowed.
    package struct TooManyKeys: Error, Sendable, Equatable {
        /// The number of combinations of values at the positions of one rule; or the number of keys
        /// bumped by all rules up to the one that exceeded the limit.
        package let count: Int
        /// The kind of the rule; `nil` if all rules together bump too many.
        package let kind: String?
    }

    /// Decides a change. The result depends only on the change and the catalog.
    ///
    /// - Throws: ``TooManyKeys`` for more than `limits.changeRuleKeysMax` combinations of values
    ///   for one rule, or more than `limits.changeKeysMax` keys in total.
    package func decide(_ change: Change, limits: Limits) throws(TooManyKeys) -> Decision {
        var decision = Decision()
        for slot in slots(ofEntity: change.entity) {
            let rule = rules[slot]
            guard case .hit = rule.verdict(onOwnEntity: change) else { continue }
            try rule.raise(
                change, slot: slot, limits: limits, isBroad: &decision.isBroad,
                into: &decision.keys)
        }
        return decision
    }
}

extension WidgetConfigurationType {
    /// The content that a dependency of a kind with this configuration makes stale.
    var target: Target {
        switch self {
        case .static, .appIntent: .timeline
        case .relevance: .relevance
        case .control: .control
        }
    }
}
