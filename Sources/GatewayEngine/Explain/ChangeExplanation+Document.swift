import CatalogModel
import GatewayCore
import GatewayDocuments
import WidgetModel

extension ChangeExplanation {
    /// The maximum number of rules shown for one change; the rest are counted.
    private static let rulesMax = 500

    /// Sets the members of a document that explain how the rules decide a change.
    package func describe(_ change: Change, by ruleSet: RuleSet, in document: inout ExplainedChange)
    {
        // Rules that match take precedence over those that do not.
        let shown = (rules.filter { $0.verdict == .hit } + rules.filter { $0.verdict != .hit })
            .prefix(Self.rulesMax).sorted { $0.slot < $1.slot }
        document.entity = change.entity
        document.unmatched = decision.isUnmatched
        document.broad = decision.isBroad
        document.rules = shown.map { $0.document(in: ruleSet) }
        document.rulesOfOtherEntities = otherRules
        if shown.count < rules.count { document.rulesNotShown = rules.count - shown.count }
        document.entityID = change.id
        if rules.isEmpty {
            let entities = Set(ruleSet.rules.map(\.declaration.entity)).sorted()
            let hint = change.entity.nearest(of: entities).map { "; did you mean `\($0)`?" } ?? ""
            document.hint = "no rule names this entity" + hint
        }
    }
}

extension ChangeExplanation.Considered {
    fileprivate func document(in ruleSet: RuleSet) -> ConsideredRule {
        var document = ConsideredRule()
        document.kind = rule.kind
        document.target = rule.target.name
        document.place = ruleSet.place(of: rule)
        document.verdict = verdict.name
        if case .literalDiffers(let attribute) = verdict { document.attribute = attribute }
        let declared = rule.declaration
        if !declared.properties.isEmpty { document.properties = declared.properties }
        if declared.operations.count < Change.Operation.allCases.count {
            document.operations = declared.operations.map(\.rawValue).sorted()
        }
        guard verdict == .hit else { return document }
        document.broad = isBroad
        document.keys = keys.map { key in
            rule.bound(key).map { binding, position in
                var bound = BoundAttribute()
                bound.attribute = binding.attribute
                bound.binding = binding.sourceText
                switch position {
                case .value(let text): bound.value = text
                case .unset: bound.unset = true
                case .missing, .nothing: bound.missing = true
                }
                return bound
            }
        }
        return document
    }
}

extension Target {
    package var name: String {
        switch self {
        case .timeline: "timeline"
        case .recommendations: "recommendations"
        case .relevance: "relevance"
        case .control: "control"
        case .activity: "activity"
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
