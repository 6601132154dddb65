import GatewayCore
import WidgetModel

extension ChangeExplanation {
    /// Rules that are shown of one change; the rest are counted.
    private static let rulesMax = 500

    /// What each rule says, as JSON.
    func members(by ruleSet: RuleSet, of change: Change) -> JSONObject {
        // What was hit is never left out for what was not.
        let shown = (rules.filter { $0.verdict == .hit } + rules.filter { $0.verdict != .hit })
            .prefix(Self.rulesMax).sorted { $0.slot < $1.slot }
        var object: JSONObject = [
            "entity": .string(change.entity), "unmatched": .bool(decision.isUnmatched),
            "broad": .bool(decision.isBroad),
            "rules": .array(shown.map { $0.json(in: ruleSet) }),
            "rulesOfOtherEntities": .integer(Int64(otherRules)),
        ]
        if shown.count < rules.count {
            object["rulesNotShown"] = .integer(Int64(rules.count - shown.count))
        }
        if let id = change.id { object["entityID"] = .string(id) }
        if rules.isEmpty {
            let entities = Set(ruleSet.rules.map(\.declaration.entity)).sorted()
            let hint = change.entity.nearest(of: entities).map { "; did you mean `\($0)`?" } ?? ""
            object["hint"] = .string("no rule is about this entity" + hint)
        }
        return object
    }
}

extension ChangeExplanation.Considered {
    fileprivate func json(in ruleSet: RuleSet) -> JSONValue {
        var object: JSONObject = [
            "kind": .string(rule.kind), "target": .string(rule.target.name),
            "place": .string(ruleSet.place(of: rule)), "verdict": .string(verdict.name),
        ]
        if case .literalDiffers(let attribute) = verdict {
            object["attribute"] = .string(attribute)
        }
        guard verdict == .hit else { return .object(object) }
        object["broad"] = .bool(isBroad)
        object["keys"] = .array(
            keys.map { key in
                .array(
                    rule.bound(key).map { binding, position in
                        var bound: JSONObject = [
                            "attribute": .string(binding.attribute),
                            "binding": .string(binding.sourceText),
                        ]
                        switch position {
                        case .value(let text): bound["value"] = .string(text)
                        case .unset: bound["unset"] = true
                        case .missing, .nothing: bound["missing"] = true
                        }
                        return .object(bound)
                    })
            })
        return .object(object)
    }
}

extension Target {
    /// Its name in answers.
    var name: String {
        switch self {
        case .timeline: "timeline"
        case .recommendations: "recommendations"
        case .relevance: "relevance"
        case .control: "control"
        }
    }
}

extension Rule.Verdict {
    fileprivate var name: String {
        switch self {
        case .hit: "hit"
        case .otherEntity: "other-entity"
        case .operationNotListed: "operation-not-listed"
        case .propertiesNotListed: "properties-not-listed"
        case .literalDiffers: "literal-differs"
        }
    }
}
