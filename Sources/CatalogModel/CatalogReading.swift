import WidgetModel

extension Catalog {
    /// Reads a catalog document, YAML or JSON according to its media type.
    ///
    /// - Throws: ``DocumentRefusal``. For a well-formed but invalid document it lists every fault
    ///   with its path.
    public init(
        contentType: String?, body: [UInt8], app: String, limits: Limits
    ) throws(DocumentRefusal) {
        guard let contentType else {
            throw .unsupportedMediaType(
                "Content-Type is missing; send application/yaml or application/json")
        }
        guard body.count <= limits.catalogBytesMax else {
            throw .tooLarge("a catalog may have at most \(limits.catalogBytesMax) bytes")
        }
        let mediaType = MediaType(contentType)
        let value: JSONValue
        if mediaType.isYAML {
            guard let text = String(validating: body, as: UTF8.self) else {
                throw .malformed("The body is not UTF-8.")
            }
            do throws(Faults) {
                value = try JSONValue(yaml: text)
            } catch {
                throw .malformed("The body \(error)")
            }
        } else if mediaType.isJSON {
            do throws(JSONFault) {
                value = try JSONValue(parsing: body)
            } catch {
                throw .malformed("The body is not JSON: \(error)")
            }
        } else {
            throw .unsupportedMediaType("send a catalog as application/yaml or application/json")
        }
        do throws(Faults) {
            try self.init(value, app: app, limits: limits)
        } catch {
            throw .wrong(error)
        }
    }

    /// Reads and validates a catalog.
    ///
    /// - Throws: ``Faults`` with every fault and its path.
    public init(_ value: JSONValue, app: String?, limits: Limits) throws(Faults) {
        var faults = Faults()
        var warnings = Faults()
        guard var reader = MemberReader(value, at: "", &faults) else { throw faults }
        let declaredApp = reader.string(
            "app", required: true, limit: limits.stringBytesMax, &faults)
        if let app, let declaredApp, declaredApp != app {
            faults.add("app", "must be `\(app)`, the app of the URL")
        }
        let selfDeclared = reader.strings(
            "selfDeclared", limit: limits.stringBytesMax, countMax: limits.attributesMax, &faults)
        let entities = Self.entities(&reader, limits, &faults)
        let intents = Self.intents(&reader, entities: entities, limits: limits, &faults)
        let elements = reader.required("widgets", &faults)
        let scope = RuleScope(entities: entities, intents: intents, limits: limits)
        var widgets: [WidgetDeclaration] = []
        var kinds: Set<String> = []
        if case .array(let elements) = elements {
            if elements.count > limits.catalogKindsMax {
                faults.add(
                    "widgets",
                    "has \(elements.count) kinds; at most \(limits.catalogKindsMax) are allowed")
            } else {
                for (index, element) in elements.enumerated() {
                    let place = "widgets[\(index)]"
                    guard
                        let widget = WidgetDeclaration(
                            element, at: place, in: scope, &faults, &warnings)
                    else { continue }
                    if !kinds.insert(widget.kind).inserted {
                        faults.add("\(place).kind", "is declared twice")
                    }
                    widgets.append(widget)
                }
            }
        } else if let elements {
            faults.add("widgets", "must be an array, not \(elements.shape)")
        }
        let activities = Self.activities(&reader, besides: kinds, in: scope, &faults)
        reader.refuseUnknown(&faults)
        let rules = widgets.flatMap { $0.dependsOn + ($0.recommendations ?? []) }
        Self.checkKeys(of: rules + activities.flatMap(\.dependsOn), limits, &faults)
        guard faults.isEmpty, let declaredApp else { throw faults }
        self.app = declaredApp
        self.selfDeclared = Set(selfDeclared)
        self.entities = entities
        self.intents = intents
        self.widgets = widgets
        self.activities = activities
        widgetPositions = Dictionary(
            widgets.enumerated().map { ($1.kind, $0) }, uniquingKeysWith: { first, _ in first })
        self.warnings = warnings.list
    }

    /// Reads the types of Live Activities, which share the names of the kinds and their limit.
    private static func activities(
        _ reader: inout MemberReader, besides kinds: Set<String>, in scope: RuleScope,
        _ faults: inout Faults
    ) -> [ActivityDeclaration] {
        let countMax = max(0, scope.limits.catalogKindsMax - kinds.count)
        var names = kinds
        return (reader.array("activities", countMax: countMax, &faults) ?? []).enumerated()
            .compactMap { index, element in
                let place = "activities[\(index)]"
                let activity = ActivityDeclaration(element, at: place, in: scope, &faults)
                if let activity, !names.insert(activity.type).inserted {
                    faults.add(
                        "\(place).type",
                        kinds.contains(activity.type)
                            ? "is also the kind of a widget" : "is declared twice")
                }
                return activity
            }
    }

    /// Rejects rules by which a change of one entity, with one value of each attribute, bumps more
    /// keys than a change may: one key for each rule, doubled by each binding to a parameter, which
    /// may be unset.
    private static func checkKeys(
        of rules: [DependencyRule], _ limits: Limits, _ faults: inout Faults
    ) {
        var byEntity: [String: (rules: Int, keys: Int)] = [:]
        for rule in rules {
            let keys = rule.match.reduce(1) { keys, match in
                if case .parameter = match.binding { keys * 2 } else { keys }
            }
            byEntity[rule.entity, default: (0, 0)].rules += 1
            byEntity[rule.entity, default: (0, 0)].keys += keys
        }
        for (entity, sum) in byEntity.sorted(by: { $0.key < $1.key })
        where sum.keys > limits.changeKeysMax {
            faults.add(
                "entities.\(entity.forError)",
                "has \(sum.rules) rules by which a change invalidates up to \(sum.keys) keys; "
                    + "at most \(limits.changeKeysMax) are allowed: declare fewer rules for it, or "
                    + "fewer bindings to parameters")
        }
    }

    private static func entities(
        _ reader: inout MemberReader, _ limits: Limits, _ faults: inout Faults
    ) -> [String: EntityDeclaration] {
        var entities: [String: EntityDeclaration] = [:]
        for (name, place, value) in declarations("entities", in: &reader, limits: limits, &faults) {
            guard var members = MemberReader(value, at: place, &faults) else { continue }
            entities[name] = EntityDeclaration(
                properties: members.strings(
                    "properties", limit: limits.stringBytesMax, countMax: limits.propertiesMax,
                    &faults))
            members.refuseUnknown(&faults)
        }
        return entities
    }

    private static func intents(
        _ reader: inout MemberReader, entities: [String: EntityDeclaration], limits: Limits,
        _ faults: inout Faults
    ) -> [String: IntentDeclaration] {
        var intents: [String: IntentDeclaration] = [:]
        for (name, place, value) in declarations("intents", in: &reader, limits: limits, &faults) {
            guard var members = MemberReader(value, at: place, &faults) else { continue }
            let title = members.string("title", limit: limits.stringBytesMax, &faults)
            _ = members.string("description", limit: limits.stringBytesMax, &faults)
            var parameters: [ParameterDeclaration] = []
            let elements =
                members.array("parameters", countMax: limits.attributesMax, &faults) ?? []
            for (index, element) in elements.enumerated() {
                let place = "\(place).parameters[\(index)]"
                guard
                    let parameter = ParameterDeclaration(
                        element, at: place, entities: entities, limits: limits, &faults)
                else { continue }
                if parameters.contains(where: { $0.name == parameter.name }) {
                    faults.add("\(place).name", "is declared twice")
                }
                parameters.append(parameter)
            }
            members.refuseUnknown(&faults)
            intents[name] = IntentDeclaration(title: title, parameters: parameters)
        }
        return intents
    }

    /// Returns the members of an object of declarations: the name, path and value of each.
    private static func declarations(
        _ name: String, in reader: inout MemberReader, limits: Limits, _ faults: inout Faults
    ) -> [(String, String, JSONValue)] {
        guard let value = reader.value(name) else { return [] }
        let members = MemberReader.members(
            of: value, at: name, countMax: limits.catalogKindsMax, &faults)
        return members.map { member in
            let place = "\(name).\(member.name.forError)"
            if let reason = member.name.isUnfit(limit: limits.stringBytesMax) {
                faults.add(place, "the name \(reason)")
            }
            return (member.name, place, member.value)
        }
    }
}

extension ParameterDeclaration {
    init?(
        _ value: JSONValue, at place: String, entities: [String: EntityDeclaration],
        limits: Limits, _ faults: inout Faults
    ) {
        guard var reader = MemberReader(value, at: place, &faults) else { return nil }
        let name = reader.string("name", required: true, limit: limits.stringBytesMax, &faults)
        let title = reader.string("title", limit: limits.stringBytesMax, &faults)
        let type = reader.string("type", required: true, limit: limits.stringBytesMax, &faults)
            .map(ParameterType.init)
        if let type, entities[type.name] == nil, !ParameterType.builtIn.contains(type.name) {
            faults.add(
                reader.path("type"), "is neither a declared entity nor a built-in type",
                hint: type.name, among: ParameterType.builtIn.union(entities.keys))
        }
        if let name, name.hasPrefix("client.") {
            faults.add(reader.path("name"), "must not start with `client.`")
        }
        let defaultPlace = reader.path("default")
        let defaultValue =
            reader.value("default").flatMap {
                ParameterValue($0, at: defaultPlace, limits: limits, &faults)
            } ?? .unset
        reader.refuseUnknown(&faults)
        guard let name, let type else { return nil }
        self.init(name: name, title: title, type: type, defaultValue: defaultValue)
    }
}
