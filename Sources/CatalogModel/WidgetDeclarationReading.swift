import WidgetModel

/// The declarations that rules may refer to, and the limits.
struct RuleScope {
    let entities: [String: EntityDeclaration]
    let intents: [String: IntentDeclaration]
    let limits: Limits
}

extension WidgetDeclaration {
    init?(
        _ value: JSONValue, at place: String, in scope: RuleScope, _ faults: inout Faults,
        _ warnings: inout Faults
    ) {
        let limits = scope.limits
        guard var reader = MemberReader(value, at: place, &faults) else { return nil }
        let kind = reader.string("kind", required: true, limit: limits.stringBytesMax, &faults)
        _ = reader.required("configuration", &faults)
        let configuration = reader.choice("configuration", WidgetConfigurationType.self, &faults)
        let intentName = reader.string("intent", limit: limits.stringBytesMax, &faults)
        let intent = intentName.flatMap { scope.intents[$0] }
        if let intentName, intent == nil {
            faults.add(
                reader.path("intent"), "is not a declared intent", hint: intentName,
                among: scope.intents.keys)
        }
        switch configuration {
        case .appIntent where intentName == nil:
            faults.add(reader.path("intent"), "is required for the configuration appIntent")
        case .static where intentName != nil:
            faults.add(reader.path("intent"), "is not allowed with a static configuration")
        default: break
        }
        let displayName = reader.string("displayName", limit: limits.stringBytesMax, &faults)
        let description = reader.string("description", limit: limits.stringBytesMax, &faults)
        let families = reader.strings(
            "families", limit: limits.stringBytesMax, countMax: 32, &faults)
        let platforms = reader.strings(
            "platforms", limit: limits.stringBytesMax, countMax: 32, &faults)
        Self.check(
            families: families, platforms: platforms, configuration, at: reader, &faults, &warnings)
        let collapse = Self.milliseconds(
            reader.value("collapse"), at: reader.path("collapse"), &faults)
        let dependsOn = DependencyRule.list(&reader, of: intent, in: scope, &faults)
        var recommendations: [DependencyRule]?
        if let value = reader.value("recommendations"),
            var members = MemberReader(value, at: reader.path("recommendations"), &faults)
        {
            if let configuration, configuration != .appIntent {
                faults.add(
                    reader.path("recommendations"),
                    "only kinds with the configuration appIntent have recommendations")
            }
            recommendations = DependencyRule.list(&members, of: intent, in: scope, &faults)
            members.refuseUnknown(&faults)
        }
        reader.refuseUnknown(&faults)
        guard let kind, let configuration else { return nil }
        self.init(
            kind: kind, configuration: configuration, intent: intentName, displayName: displayName,
            description: description, families: families, platforms: platforms,
            collapseMilliseconds: collapse, dependsOn: dependsOn, recommendations: recommendations)
    }

    private static func check(
        families: [String], platforms: [String], _ configuration: WidgetConfigurationType?,
        at reader: MemberReader, _ faults: inout Faults, _ warnings: inout Faults
    ) {
        for (index, platform) in platforms.enumerated()
        where !WidgetFamilies.platforms.contains(platform) {
            warnings.add(
                "\(reader.path("platforms"))[\(index)]", "is not a platform known to this gateway")
        }
        let offered = WidgetFamilies.platforms.filter {
            WidgetFamilies.isOffered(on: $0, declared: platforms)
        }
        for (index, family) in families.enumerated() {
            let place = "\(reader.path("families"))[\(index)]"
            guard let supported = WidgetFamilies.table[family] else {
                warnings.add(place, "is not a family known to this gateway")
                continue
            }
            if configuration == .control {
                faults.add(place, "a control has no families")
            } else if !offered.isEmpty, supported.isDisjoint(with: offered) {
                faults.add(
                    place,
                    "\(family) exists on \(supported.sorted().joined(separator: ", ")) only, "
                        + "none of which is among the platforms")
            }
        }
        if configuration == .relevance, !platforms.isEmpty, !platforms.contains("watchOS") {
            faults.add(reader.path("platforms"), "relevance widgets exist on watchOS only")
        }
    }

    /// Reads `200ms`, `2s`, or a number of milliseconds. Returns 0 when the value is missing.
    private static func milliseconds(
        _ value: JSONValue?, at place: String, _ faults: inout Faults
    ) -> Int64 {
        let hourMilliseconds: Int64 = 3_600_000
        var result: Int64?
        switch value {
        case nil: return 0
        case .integer(let number): result = number
        case .string(let text):
            if text.hasSuffix("ms") {
                result = Int64(text.dropLast(2))
            } else if text.hasSuffix("s"), let seconds = Double(text.dropLast()),
                seconds >= 0, seconds <= 3_600
            {
                result = Int64(seconds * 1000)
            }
        default: break
        }
        guard let result, result >= 0, result <= hourMilliseconds else {
            faults.add(place, "must be a duration such as 200ms or 2s, at most 3600s")
            return 0
        }
        return result
    }
}

extension DependencyRule {
    /// Reads the member `dependsOn`.
    static func list(
        _ reader: inout MemberReader, of intent: IntentDeclaration?, in scope: RuleScope,
        _ faults: inout Faults
    ) -> [DependencyRule] {
        let elements =
            reader.array("dependsOn", countMax: scope.limits.kindRulesMax, &faults) ?? []
        let place = reader.path("dependsOn")
        return elements.enumerated().compactMap { index, element in
            DependencyRule(element, at: "\(place)[\(index)]", of: intent, in: scope, &faults)
        }
    }

    init?(
        _ value: JSONValue, at place: String, of intent: IntentDeclaration?, in scope: RuleScope,
        _ faults: inout Faults
    ) {
        let limits = scope.limits
        guard var reader = MemberReader(value, at: place, &faults) else { return nil }
        let entity = reader.string("entity", required: true, limit: limits.stringBytesMax, &faults)
        if let entity, scope.entities[entity] == nil {
            faults.add(
                reader.path("entity"), "is not a declared entity", hint: entity,
                among: scope.entities.keys)
        }
        let match = Self.match(&reader, of: intent, limits: limits, &faults)
        let properties = reader.strings(
            "properties", limit: limits.stringBytesMax, countMax: limits.propertiesMax, &faults)
        if let declared = entity.flatMap({ scope.entities[$0] })?.properties {
            for (index, property) in properties.enumerated() where !declared.contains(property) {
                faults.add(
                    "\(reader.path("properties"))[\(index)]", "is not a property of the entity",
                    hint: property, among: declared)
            }
        }
        let operations = (reader.array("operations", countMax: 8, &faults) ?? []).enumerated()
            .compactMap {
                MemberReader.choice(
                    $1, at: "\(reader.path("operations"))[\($0)]", Change.Operation.self, &faults)
            }
        reader.refuseUnknown(&faults)
        guard let entity else { return nil }
        self.init(
            entity: entity, match: match, properties: Set(properties).sorted(),
            operations: operations.isEmpty ? Set(Change.Operation.allCases) : Set(operations))
    }

    private static func match(
        _ reader: inout MemberReader, of intent: IntentDeclaration?, limits: Limits,
        _ faults: inout Faults
    ) -> [Match] {
        guard let value = reader.value("match") else { return [] }
        let place = reader.path("match")
        var match: [Match] = []
        for member in MemberReader.members(
            of: value, at: place, countMax: limits.bindingsMax, called: "bindings", &faults)
        {
            let place = "\(place).\(member.name.forError)"
            if let reason = member.name.isUnfit(limit: limits.stringBytesMax) {
                faults.add(place, "the name \(reason)")
                continue
            }
            guard let text = ParameterValue.text(of: member.value) else {
                faults.add(
                    place,
                    "must be a literal, `$parameter` or `$client.attribute`, not "
                        + member.value.shape)
                continue
            }
            guard text.utf8.count <= limits.stringBytesMax, let binding = Binding(text) else {
                faults.add(place, "must be a literal, `$parameter` or `$client.attribute`")
                continue
            }
            if case .parameter(let name) = binding, intent?.parameter(name) == nil {
                faults.add(
                    place, "binds to a parameter that the kind, or activity, does not have",
                    hint: name, among: intent?.parameters.map(\.name) ?? [], sign: "$")
            }
            match.append(Match(attribute: member.name, binding: binding))
        }
        return match.sorted { $0.attribute < $1.attribute }
    }
}
