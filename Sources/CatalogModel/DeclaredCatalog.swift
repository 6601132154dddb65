import WidgetModel

/// Compares a catalog with what an app's code declares: kinds, families, intents, parameters and
/// types of Live Activities. Rules, properties, platforms, sources of content and attributes are
/// only in the catalog.
extension Catalog {
    /// Returns the places where the catalog differs from the code, each with what to correct.
    ///
    /// - Parameter declared: What all extensions of the app declare, in the form of a catalog.
    public func differences(from declared: Catalog) -> Faults {
        var faults = Faults()
        var compared: Set<String> = []
        for widget in declared.widgets {
            guard let index = widgetPositions[widget.kind] else { continue }
            let own = widgets[index]
            let place = "widgets[\(index)]"
            if own.configuration != widget.configuration {
                faults.add(
                    "\(place).configuration",
                    "is \(own.configuration.rawValue), but the app declares "
                        + widget.configuration.rawValue)
            }
            if !own.families.isEmpty, widget.configuration != .relevance {
                Self.compare(own.families, widget.families, at: "\(place).families", &faults)
            }
            if own.intent != widget.intent {
                faults.add(
                    "\(place).intent",
                    widget.intent.map { "is not \($0), the intent that the app declares" }
                        ?? "is stated, but the app declares none")
            } else if let name = widget.intent, compared.insert(name).inserted {
                compareParameters(ofIntent: name, with: declared, &faults)
            }
        }
        // A control that no extension declares may be made without this library.
        let own = widgets.filter {
            $0.configuration != .control || declared.widget(kind: $0.kind) != nil
        }
        Self.compare(own.map(\.kind), declared.widgets.map(\.kind), at: "widgets", &faults)
        // Activities may be declared without this library.
        if !declared.activities.isEmpty {
            Self.compare(
                activities.map(\.type), declared.activities.map(\.type), at: "activities", &faults)
        }
        return faults
    }

    /// Adds the names that only one side has, each with the nearest one of the other side.
    private static func compare(
        _ own: [String], _ declared: [String], at place: String, _ faults: inout Faults
    ) {
        for name in declared where !own.contains(name) {
            faults.add(
                place, "lack `\(name)`, which the app declares", hint: name, among: own)
        }
        for name in own where !declared.contains(name) {
            faults.add(
                place, "have `\(name)`, which the app does not declare", hint: name,
                among: declared)
        }
    }

    private func compareParameters(
        ofIntent name: String, with declared: Catalog, _ faults: inout Faults
    ) {
        let place = "intents.\(name).parameters"
        let own = intents[name]?.parameters ?? []
        let theirs = declared.intents[name]?.parameters ?? []
        Self.compare(own.map(\.name), theirs.map(\.name), at: place, &faults)
        for (index, parameter) in own.enumerated() {
            guard let other = theirs.first(where: { $0.name == parameter.name }),
                other.type != parameter.type
            else { continue }
            faults.add(
                "\(place)[\(index)].type",
                "is \(parameter.type.text), but the app declares \(other.type.text)")
        }
    }

    /// Returns `document` with the declared widgets, intents, entities and activities. Widgets that
    /// the code does not declare are removed, except controls; so are types of activities, if the
    /// code declares any. Everything else is kept.
    ///
    /// - Parameters:
    ///   - document: The catalog as it is.
    ///   - declared: What all extensions of the app declare, in the form of a catalog.
    public static func document(_ document: JSONValue, declaring declared: JSONValue) -> JSONValue {
        var result = document.objectValue ?? JSONObject()
        let declared = declared.objectValue ?? JSONObject()
        var entities = result["entities"]?.objectValue ?? JSONObject()
        for entity in declared["entities"]?.objectValue?.members ?? []
        where entities[entity.name] == nil {
            entities[entity.name] = entity.value
        }
        result["entities"] = .object(entities)
        var intents = result["intents"]?.objectValue ?? JSONObject()
        for intent in declared["intents"]?.objectValue?.members ?? [] {
            var own = intents[intent.name]?.objectValue ?? JSONObject()
            own["parameters"] = .array(
                merged(own["parameters"], intent.value.objectValue?["parameters"], by: "name"))
            intents[intent.name] = .object(own)
        }
        result["intents"] = .object(intents)
        let controls = (result["widgets"]?.arrayValue ?? []).filter { widget in
            widget.objectValue?["configuration"] == "control"
                && !(declared["widgets"]?.arrayValue ?? []).contains {
                    $0.objectValue?["kind"] == widget.objectValue?["kind"]
                }
        }
        let stated: Set = ["kind", "configuration", "intent", "families"]
        result["widgets"] = .array(
            merged(result["widgets"], declared["widgets"], by: "kind", stated) + controls)
        let activities = merged(result["activities"], declared["activities"], by: "type")
        if !activities.isEmpty { result["activities"] = .array(activities) }
        return .object(result)
    }

    /// Returns the declared elements, each with the members that only the existing one of the same
    /// name has; members that code always states are the code's.
    private static func merged(
        _ existing: JSONValue?, _ declared: JSONValue?, by name: String, _ stated: Set<String> = []
    ) -> [JSONValue] {
        (declared?.arrayValue ?? []).map { element in
            let members = element.objectValue ?? JSONObject()
            let old = (existing?.arrayValue ?? []).first {
                $0.objectValue?[name] == members[name]
            }
            var merged = members
            for member in old?.objectValue?.members ?? []
            where merged[member.name] == nil && !stated.contains(member.name) {
                merged[member.name] = member.value
            }
            return .object(merged)
        }
    }
}
