import WidgetModel

/// A dependency of a client: a rule, and the client's own values at its positions.
package struct Dependency: Sendable, Hashable {
    /// The slot of the rule.
    package let rule: Int
    /// The client's own values; never ``BoundValues/Position/missing``.
    package let values: BoundValues
}

/// The subscriptions of one client under a catalog: its kinds, and its dependencies by their rules.
struct ClientSubscriptions {
    /// The kinds that it has widgets, controls or activities of, each once.
    fileprivate(set) var kinds: [KindRules] = []
    /// The kinds that it has a non-empty recommendation set of, each once.
    fileprivate(set) var sets: [KindRules] = []
    /// The dependencies, each once, including those by retired rules.
    fileprivate(set) var dependencies: [Dependency] = []
    /// The activities of declared types.
    fileprivate(set) var activities: [RegisteredActivity] = []

    /// The key that all its subscriptions depend on, for operator reloads of the client.
    let operatorKey: UInt64

    /// The length up to which the list is searched linearly; longer lists are searched by hash.
    private static let searchedMax = 16
    private var seen: Set<Dependency> = []

    fileprivate init(operatorKey: UInt64, capacity: Int) {
        self.operatorKey = operatorKey
        dependencies.reserveCapacity(capacity)
    }

    /// Whether the client has no subscriptions under the catalog.
    var isEmpty: Bool { kinds.isEmpty && sets.isEmpty }

    fileprivate mutating func add(_ dependency: Dependency) {
        if dependencies.count < Self.searchedMax {
            guard !dependencies.contains(dependency) else { return }
        } else {
            if seen.isEmpty { seen = Set(dependencies) }
            guard seen.insert(dependency).inserted else { return }
        }
        dependencies.append(dependency)
    }
}

extension Rule {
    /// Calls `body` with the keys of a subscription with these values under this rule: one for each
    /// combination of list values; none if the client lacks a bound attribute.
    package func visitKeys(
        parameters: [String: ParameterValue], attributes: [String: [String]],
        _ body: (BoundValues) -> Void
    ) {
        BoundValues.visitCombinations(of: bindings.count) { place in
            switch bindings[place].source {
            case .parameter(let name, _):
                // An unset parameter stays unset even if it has a default, because the client knows
                // the widget by it.
                switch parameters[name] ?? .unset {
                case .unset: .one(.unset)
                case .single(let text): .one(.value(text))
                case .list([]): .one(.nothing)
                case .list(let texts): .each(texts)
                }
            case .clientAttribute(let name): .each(attributes[name] ?? [])
            }
        } _: { bytes in
            body(BoundValues(rule: self, bytes: bytes))
        }
    }

    /// Returns the number of keys that ``visitKeys(parameters:attributes:_:)`` would visit, without
    /// creating them, so that a registration with too many is rejected before it costs memory.
    func combinations(
        parameters: [String: ParameterValue], attributes: [String: [String]]
    ) -> Int {
        bindings.reduce(1) { product, binding in
            let count: Int
            switch binding.source {
            case .parameter(let name, _):
                count = max(1, parameters[name]?.texts.count ?? 1)
            case .clientAttribute(let name):
                count = attributes[name]?.count ?? 0
            }
            let (result, overflow) = product.multipliedReportingOverflow(by: count)
            return overflow ? Int.max : result
        }
    }

    /// Calls `body` with the hash of every key that a change may bump to affect `values`: at each
    /// position either the own value, or `missing` for a change that lacks the attribute.
    package func visitHashes(reaching values: BoundValues, _ body: (UInt64) -> Void) {
        visitKeys(reaching: values) { body($0.hash) }
    }

    /// Calls `body` with the same keys.
    func visitKeys(reaching values: BoundValues, _ body: (EncodedKey) -> Void) {
        values.withEncoded { body($0) }
        values.visitLacking { bytes in
            // Sound: the buffer is read within the closure that lends it.
            bytes.withUnsafeBytes { body(EncodedKey(hash: keyHash($0), bytes: $0)) }
        }
    }
}

extension RuleSet {
    /// Returns the subscriptions of a client under this catalog; `kinds` restricts them.
    func holdings(of record: ClientRecord, kinds: Set<String>?) -> ClientSubscriptions {
        let registration = record.registration
        var holdings = ClientSubscriptions(
            operatorKey: operatorKey(client: record.client),
            capacity: registration.widgets.count + registration.controls.count)
        func add(_ kind: KindRules, _ parameters: [String: ParameterValue], isSet: Bool) {
            for slot in kind.slots {
                let rule = rule(slot)
                guard (rule.target == .recommendations) == isSet else { continue }
                rule.visitKeys(parameters: parameters, attributes: record.attributes) {
                    holdings.add(Dependency(rule: slot, values: $0))
                }
            }
        }
        func wanted(_ kind: String) -> KindRules? {
            if let kinds, !kinds.contains(kind) { return nil }
            return rules(ofKind: kind)
        }
        func addHeld(
            _ kind: String, _ parameters: [String: ParameterValue], fits: (Target) -> Bool
        ) -> Bool {
            guard let kind = wanted(kind), fits(kind.target) else { return false }
            holdings.kinds.appendOnce(kind)
            add(kind, parameters, isSet: false)
            return true
        }
        for widget in registration.widgets {
            _ = addHeld(widget.kind, widget.parameters) { $0.isWidget }
        }
        for control in registration.controls {
            _ = addHeld(control.kind, control.parameters) { $0 == .control }
        }
        for activity in registration.activities {
            let isHeld = addHeld(activity.type, activity.attributes) { $0 == .activity }
            if isHeld { holdings.activities.append(activity) }
        }
        for set in registration.recommendations where !set.items.isEmpty {
            guard let kind = wanted(set.kind), kind.target != .activity else { continue }
            holdings.sets.appendOnce(kind)
            for item in set.items { add(kind, item.parameters, isSet: true) }
        }
        return holdings
    }
}

extension [KindRules] {
    fileprivate mutating func appendOnce(_ kind: KindRules) {
        if !contains(where: { $0 === kind }) { append(kind) }
    }
}
