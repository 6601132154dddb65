import WidgetModel
import WidgetViews

extension WidgetDeclarations {
    /// The declared widgets, controls and Live Activities with their intents and entities, in the
    /// form of a catalog. Lacks what code does not state: the app, rules, properties and platforms,
    /// and of activities all but the type.
    public var catalog: JSONValue {
        var entities = JSONObject()
        var intents = JSONObject()
        func described(
            _ kind: String, configuration: String, name: LocalizedStringResource,
            _ description: LocalizedStringResource?, intent: String?,
            _ parameters: [IntentParameterDeclaration]
        ) -> JSONObject {
            var entry: JSONObject = [
                "kind": .string(kind), "configuration": .string(configuration),
            ]
            if let intent {
                entry["intent"] = .string(intent)
                let declared = parameters.map { parameter -> JSONValue in
                    if let entity = parameter.type.entityName { entities[entity] = [:] }
                    return [
                        "name": .string(parameter.name), "title": .string(parameter.title.text),
                        "type": .string(parameter.catalogType),
                    ]
                }
                intents[intent] = ["parameters": .array(declared)]
            }
            if name.text != kind { entry["displayName"] = .string(name.text) }
            entry["description"] = description.map { .string($0.text) }
            return entry
        }
        let widgets = kinds.compactMap { declarations[$0] }.map { widget -> JSONValue in
            let traits = widget.traits
            let configuration =
                traits.isRelevance ? "relevance" : widget.intent == nil ? "static" : "appIntent"
            var entry = described(
                widget.kind, configuration: configuration, name: widget.displayName,
                widget.description,
                intent: widget.intent, widget.parameters)
            if !traits.isRelevance {
                let families = traits.supportedFamilies ?? WidgetFamily.allCases
                entry["families"] = .array(families.map { .string($0.rawValue) })
            }
            return .object(entry)
        }
        let controls = controls.map { control -> JSONValue in
            .object(
                described(
                    control.kind, configuration: "control", name: control.displayName,
                    control.description,
                    intent: control.intent, control.parameters))
        }
        var catalog: JSONObject = [
            "entities": .object(entities), "intents": .object(intents),
            "widgets": .array(widgets + controls),
        ]
        if !activities.isEmpty {
            catalog["activities"] = .array(activityTypes.map { ["type": .string($0)] })
        }
        return .object(catalog)
    }
}

extension ParameterType {
    /// The name of the entity whose ids are the values.
    fileprivate var entityName: String? {
        switch self {
        case .entity(let name): name
        case .list(let element): element.entityName
        default: nil
        }
    }
}
