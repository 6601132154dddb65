import WidgetModel

/// What a canary registers and posts: a widget of its own that a change of its own concerns, and
/// nobody else.
struct CanaryPlan: Equatable {
    /// The widget kind.
    let kind: String
    /// The family it is placed in.
    let family: String
    /// The parameter that sets this widget apart.
    let parameter: String
    /// Its value here.
    let value: String
    /// What is announced.
    let change: JSONValue

    /// Why there is no plan.
    struct Impossible: Error, Equatable {
        let reason: String
    }

    /// Plans for a kind, or for the first of the catalog that can be followed.
    ///
    /// A change reaches one widget alone when a rule binds a parameter to it: with another value,
    /// nobody's agrees. Rules without such a binding, or with a client's attribute in it, are no use
    /// here.
    ///
    /// - Parameter value: What no other widget's parameter is.
    init(_ catalog: Catalog, kind: String?, value: String) throws(Impossible) {
        if let kind, catalog.widget(kind: kind) == nil {
            throw Impossible(reason: "the catalog declares no kind \(kind)")
        }
        for widget in catalog.widgets where kind == nil || widget.kind == kind {
            guard let plan = Self(catalog, widget, value) else { continue }
            self = plan
            return
        }
        let what = kind.map { "changes cannot concern one widget of the kind \($0) alone" }
        throw Impossible(
            reason: (what ?? "no kind of the catalog has changes that concern one widget alone")
                + ": one is needed that is configured by an app intent and has a rule that matches "
                + "a parameter of a text or entity")
    }

    private init?(_ catalog: Catalog, _ widget: WidgetDeclaration, _ value: String) {
        guard widget.configuration == .appIntent, let intent = catalog.intent(of: widget),
            let rule = widget.dependsOn.first(where: { Self.parameter(of: $0, intent) != nil }),
            let parameter = Self.parameter(of: rule, intent)
        else { return nil }
        kind = widget.kind
        family = widget.families.first ?? "systemSmall"
        (self.parameter, self.value) = (parameter, value)
        var data: JSONObject = [
            "entity": .string(rule.entity),
            "operation": .string(
                (rule.operations.contains(.update) ? .update : rule.operations.first ?? .update)
                    .rawValue),
        ]
        var attributes = JSONObject()
        for match in rule.match {
            let text: String
            switch match.binding {
            case .parameter: text = value
            case .literal(let literal): text = literal
            case .clientAttribute: return nil
            }
            if match.attribute == "id" {
                data["id"] = .string(text)
            } else {
                attributes[match.attribute] = .string(text)
            }
        }
        if let property = rule.properties.first { data["properties"] = [.string(property)] }
        if !attributes.members.isEmpty { data["attributes"] = .object(attributes) }
        change = .object(data)
    }

    /// The one parameter that a rule binds and that may be any text; `nil` where there is none, or
    /// where something of a client is bound too.
    private static func parameter(of rule: DependencyRule, _ intent: IntentDeclaration) -> String? {
        var found: String?
        for match in rule.match {
            switch match.binding {
            case .literal: continue
            case .clientAttribute: return nil
            case .parameter(let name):
                guard found == nil || found == name, let declared = intent.parameter(name),
                    !declared.type.isArray,
                    declared.type.name == "String" || declared.type.name == "AppEnum"
                        || !ParameterType.builtIn.contains(declared.type.name)
                else { return nil }
                found = name
            }
        }
        return found
    }

    /// What is registered.
    var registration: JSONValue {
        [
            "platform": "iOS", "osVersion": "26.0", "delivery": [["type": "stream"]],
            "widgets": [
                [
                    "kind": .string(kind), "family": .string(family),
                    "parameters": .object([parameter: .string(value)]), "count": 1,
                ]
            ],
        ]
    }

    /// The event of one round.
    func event(id: String) -> JSONValue {
        [
            "specversion": "1.0", "type": "timelinectl.canary", "source": "timelinectl/canary",
            "id": .string(id), "data": change,
        ]
    }

    /// Whether a notification says that the widget is stale.
    func concerns(_ claims: ReloadNotification) -> Bool {
        claims.all
            || claims.reload.contains { reload in
                reload.kind == kind
                    && reload.parameters.allSatisfy { $0.name != parameter || $0.value == value }
            }
    }

    /// What is acknowledged.
    func acknowledgement(_ cursor: Cursor, milliseconds: Int64) -> JSONValue {
        [
            "cursor": .string(cursor.text),
            "rebuilt": [
                [
                    "kind": .string(kind), "parameters": .object([parameter: .string(value)]),
                    "ms": .integer(milliseconds),
                ]
            ],
        ]
    }
}
