import WidgetModel

/// One thing one client depends on: a rule, and the client's own values at its positions.
package struct Dependency: Sendable, Hashable {
    /// The rule's slot.
    package let rule: Int
    /// Own values; never ``BoundValues/Position/missing``.
    package let positions: [BoundValues.Position]
}

extension Rule {
    /// The positions of what depends on this rule with these values: one for each combination of
    /// list values; none when the client lacks a bound attribute.
    func positions(
        parameters: [String: ParameterValue], attributes: [String: [String]]
    ) -> [[BoundValues.Position]] {
        var combinations: [[BoundValues.Position]] = [[]]
        for binding in bindings {
            let own: [BoundValues.Position]
            switch binding.source {
            case .parameter(let name, _):
                // A default stands in for what is unset, but by the name of unset: that is how
                // the client knows the widget.
                switch parameters[name] ?? .unset {
                case .unset: own = [.unset]
                case .list([]): own = [.nothing]
                case let value: own = value.texts.map { .value($0) }
                }
            case .clientAttribute(let name):
                own = (attributes[name] ?? []).map { .value($0) }
            }
            combinations = combinations.flatMap { head in own.map { head + [$0] } }
        }
        return combinations
    }

    /// How many combinations ``positions(parameters:attributes:)`` would return, without making
    /// them: a registration is refused by this number before it costs memory.
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

    /// Every key that a change may raise to hit `positions`: at each one the own value, or
    /// `missing` for a change that lacks the attribute.
    func hashes(reaching positions: [BoundValues.Position]) -> [UInt64] {
        var encodings: [[UInt8]] = [[]]
        for position in positions { encodings = encodings.extended(by: [position, .missing]) }
        return encodings.map(keyHash)
    }

    /// The name by which a notification calls one of this rule's keys.
    package func name(of positions: [BoundValues.Position]) -> StaleName {
        guard target == .timeline else { return StaleName(target, kind) }
        var parameters: [ReloadNotification.Parameter] = []
        for (binding, position) in zip(bindings, positions) {
            guard case .parameter(let name, _) = binding.source else { continue }
            let parameter: ReloadNotification.Parameter
            switch position {
            case .missing, .nothing: continue
            case .unset: parameter = .init(name: name, value: nil)
            case .value(let text): parameter = .init(name: name, value: text)
            }
            if !parameters.contains(parameter) { parameters.append(parameter) }
        }
        return StaleName(target, kind, parameters.sorted { $0.name < $1.name })
    }
}

extension RuleSet {
    /// Everything a client depends on by rules, each once. `kinds` narrows it.
    ///
    /// - Parameter includingRetired: Whether rules of earlier catalogs count too.
    package func dependencies(
        of record: ClientRecord, kinds: Set<String>? = nil, includingRetired: Bool = false
    ) -> [Dependency] {
        var result: [Dependency] = []
        var seen: Set<Dependency> = []
        visitDependants(of: record, kinds: kinds) { kind, isSet, parameters in
            let retired = includingRetired ? retiredSlots(ofKind: kind) : []
            for slot in slots(ofKind: kind) + retired
            where (rule(slot).target == .recommendations) == isSet {
                for positions in rule(slot).positions(
                    parameters: parameters, attributes: record.attributes)
                {
                    let dependency = Dependency(rule: slot, positions: positions)
                    if seen.insert(dependency).inserted { result.append(dependency) }
                }
            }
        }
        return result
    }

    /// Calls `body` with each declared kind the client holds, whether it is held as a
    /// recommendation set, and the values that configure it.
    func visitDependants(
        of record: ClientRecord, kinds: Set<String>?,
        _ body: (String, Bool, [String: ParameterValue]) -> Void
    ) {
        func isWanted(_ kind: String) -> Bool {
            since(kind: kind) != nil && (kinds?.contains(kind) ?? true)
        }
        for widget in record.registration.widgets
        where isWanted(widget.kind) && target(ofKind: widget.kind) != .control {
            body(widget.kind, false, widget.parameters)
        }
        for control in record.registration.controls
        where isWanted(control.kind) && target(ofKind: control.kind) == .control {
            body(control.kind, false, control.parameters)
        }
        for set in record.registration.recommendations where isWanted(set.kind) {
            for item in set.items { body(set.kind, true, item.parameters) }
        }
    }

    /// The kinds of which the client holds widgets or controls.
    func heldKinds(of record: ClientRecord, kinds: Set<String>?) -> Set<String> {
        var held: Set<String> = []
        visitDependants(of: record, kinds: kinds) { kind, isSet, _ in
            if !isSet { held.insert(kind) }
        }
        return held
    }

    /// The kinds of which the client holds a non-empty recommendation set.
    func heldSets(of record: ClientRecord, kinds: Set<String>?) -> Set<String> {
        var held: Set<String> = []
        visitDependants(of: record, kinds: kinds) { kind, isSet, _ in
            if isSet { held.insert(kind) }
        }
        return held
    }
}
