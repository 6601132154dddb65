import CatalogModel
import GatewayTestSupport
import WidgetModel

/// Catalogs, registrations and changes drawn from a vocabulary so small that all of them interact.
enum RandomInputs {
    static let kinds = ["k0", "k1", "k2", "k3"]

    /// The rules that bind to parameters. The `freeRules` below bind to none.
    private static let boundRules: [JSONValue] = [
        ["entity": "E0", "match": ["id": "$a"], "properties": ["p"]],
        ["entity": "E0", "match": ["id": "$a", "x": "$b"]],
        [
            "entity": "E0", "match": ["x": "$b", "y": "$client.h"],
            "operations": ["insert", "delete"],
        ],
        ["entity": "E0", "match": ["id": "$a", "y": "$client.h"], "properties": ["q"]],
        ["entity": "E1", "match": ["id": "$b"], "operations": ["update"]],
        ["entity": "E1", "match": ["id": "1", "x": "$a"]],
    ]
    private static let freeRules: [JSONValue] = [
        ["entity": "E1", "match": ["y": "$client.h"]],
        ["entity": "E1", "match": ["x": "1"], "properties": ["q"]],
        ["entity": "E0", "operations": ["delete"]],
        ["entity": "E1", "match": ["y": "$client.h", "x": "2"]],
    ]

    private static func rules(
        _ pool: [JSONValue], _ random: inout SplitMix64
    ) -> JSONValue {
        .array((0..<random.below(4)).map { _ in random.pick(pool) })
    }

    /// A catalog; two drawn one after the other mostly share rules.
    static func catalog(app: String, _ random: inout SplitMix64) throws -> Catalog {
        var parameters: [JSONValue] = []
        for name in ["a", "b"] {
            var parameter: JSONObject = ["name": .string(name), "type": "String"]
            if random.happens(20) { parameter["default"] = .string(random.pick(["1", "2"])) }
            parameters.append(.object(parameter))
        }
        var widgets: [JSONValue] = []
        for kind in kinds where random.happens(85) {
            let configuration: String
            switch kind {
            case "k2": configuration = "static"
            case "k3": configuration = random.pick(["control", "control", "relevance"])
            default: configuration = "appIntent"
            }
            var widget: JSONObject = [
                "kind": .string(kind), "configuration": .string(configuration),
                "collapse": .integer(Int64(random.pick([0, 0, 100, 300]))),
            ]
            if configuration == "static" {
                widget["dependsOn"] = rules(freeRules, &random)
            } else {
                widget["intent"] = "I"
                widget["dependsOn"] = rules(boundRules + freeRules, &random)
            }
            if kind == "k0", random.happens(90) {
                widget["recommendations"] = ["dependsOn": rules(boundRules + freeRules, &random)]
            }
            widgets.append(.object(widget))
        }
        var activities: [JSONValue] = []
        let isKind = widgets.contains { $0.objectValue?["kind"] == "k3" }
        // A kind of one catalog may be a type of activities in the next.
        let types = isKind ? ["t0"] : ["t0", "k3"]
        for type in types where random.happens(85) {
            activities.append([
                "type": .string(type), "attributes": ["a", "b"],
                "dependsOn": rules(boundRules + freeRules, &random),
                "content": ["url": "https://content"],
            ])
        }
        return try Catalog(
            [
                "app": .string(app), "selfDeclared": ["h"],
                "entities": ["E0": ["properties": ["p", "q"]], "E1": ["properties": ["p", "q"]]],
                "intents": ["I": ["parameters": .array(parameters)]], "widgets": .array(widgets),
                "activities": .array(activities),
            ], app: app, limits: Limits())
    }

    private static func parameters(_ random: inout SplitMix64) -> [String: ParameterValue] {
        var parameters: [String: ParameterValue] = [:]
        for name in ["a", "b"] {
            switch random.below(6) {
            case 0: parameters[name] = .unset
            case 1: parameters[name] = .list(random.pick([["1", "2"], ["2", "3"], ["1"], []]))
            case 2: break
            default: parameters[name] = .single(random.pick(["1", "2", "3"]))
            }
        }
        return parameters
    }

    /// Attributes a client may have; some clients lack the one that rules bind to.
    static func attributes(_ random: inout SplitMix64) -> [String: [String]] {
        random.pick([["h": ["1"]], ["h": ["2"]], ["h": ["1", "2"]], [:]])
    }

    /// Returns a registration with those attributes.
    static func registration(
        attributes: [String: [String]], _ random: inout SplitMix64
    ) -> ClientRegistration {
        var registration = ClientRegistration(platform: "iOS", attributes: attributes)
        for _ in 0..<random.below(4) {
            registration.widgets.append(
                ConfiguredWidget(
                    kind: random.pick(kinds + ["ghost"]), family: "systemSmall",
                    parameters: parameters(&random)))
        }
        if random.happens(40) {
            registration.controls.append(
                PlacedControl(kind: random.pick(["k3", "k0"]), id: "c", parameters: [:]))
        }
        if random.happens(60) {
            let items = (0..<random.below(3)).map { _ in
                RecommendationSet.Item(parameters: parameters(&random), description: "")
            }
            registration.recommendations = [RecommendationSet(kind: "k0", items: items)]
        }
        if random.happens(50) {
            registration.activities = (0...random.below(2)).map { id in
                RegisteredActivity(
                    type: random.pick(["t0", "t0", "k3", "ghost"]), id: "\(id)",
                    attributes: parameters(&random))
            }
        }
        return registration
    }

    /// A change of any shape.
    static func change(_ random: inout SplitMix64) -> Change {
        var attributes: [String: [String]] = [:]
        for name in ["x", "y"] where random.happens(70) {
            attributes[name] = random.pick([["1"], ["2"], ["3"], ["1", "2"], ["2", "3"]])
        }
        return Change(
            entity: random.pick(["E0", "E1", "E2"]),
            id: random.pick([nil, "1", "2", "3", "1", "2"]),
            operation: random.pick([.insert, .update, .update, .update, .delete]),
            properties: random.pick([[], ["p"], ["q"], ["p", "q"]]), attributes: attributes)
    }
}
