import CatalogModel
import WidgetModel

/// The registration and the change of a canary: one widget, and a change that concerns only it.
struct CanaryPlan: Equatable {
    let kind: String
    /// The family in which it is placed.
    let family: String
    /// The parameter that distinguishes this widget.
    let parameter: String
    /// The value of that parameter.
    let value: String
    /// The data of the posted event.
    let change: JSONValue

    /// Thrown when the catalog allows no such plan.
    struct Impossible: Error, Equatable {
        let reason: String
    }

    /// Plans for `kind`, or for the first suitable kind of the catalog.
    ///
    /// A change reaches only this widget when a rule binds a parameter to it, because no other
    /// widget has this parameter value. Rules without such a binding, or with a binding to a
    /// client's attribute, are unsuitable.
    ///
    /// - Parameter value: A value that the parameter has in no other widget.
    init(_ catalog: Catalog, kind: String?, value: String) throws(Impossible) {
        if let kind, catalog.widget(kind: kind) == nil {
            throw Impossible(reason: "the catalog declares no kind \(kind)")
        }
        for widget in catalog.widgets where kind == nil || widget.kind == kind {
            guard let plan = Self(catalog, widget, value) else { continue }
            self = plan
            return
        }
        let what = kind.map { "no change can affect a single widget of kind \($0)" }
        throw Impossible(
            reason: (what ?? "no kind in the catalog has changes that affect a single widget")
                + ": the canary needs a kind that is configured by an app intent and has a rule "
                + "matching a text or entity parameter")
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

    /// The only parameter that a rule binds, if it accepts any text; `nil` if there is none, or if
    /// the rule also binds a client's attribute.
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

    var registration: JSONValue { Self.registration(widgets: Self.widgets([self])) }

    /// The registration document of a client with these widgets.
    static func registration(widgets: JSONValue) -> JSONValue {
        [
            "platform": "iOS", "osVersion": "26.0", "delivery": [["type": "stream"]],
            "widgets": widgets,
        ]
    }

    /// The widgets of several plans, as a registration has them.
    static func widgets(_ plans: [CanaryPlan]) -> JSONValue {
        .array(
            plans.map { plan in
                [
                    "kind": .string(plan.kind), "family": .string(plan.family),
                    "parameters": plan.parameters, "count": 1,
                ]
            })
    }

    private var parameters: JSONValue { .object([parameter: .string(value)]) }

    func event(id: String) -> JSONValue {
        [
            "specversion": "1.0", "type": "timelinectl.canary", "source": "timelinectl/canary",
            "id": .string(id), "data": change,
        ]
    }

    /// Whether a notification marks the widget as stale.
    func concerns(_ claims: ReloadNotification) -> Bool {
        claims.all
            || claims.reload.contains { reload in
                reload.kind == kind
                    && reload.parameters.allSatisfy { $0.name != parameter || $0.value == value }
            }
    }

    func acknowledgement(_ cursor: Cursor, milliseconds: Int64) -> JSONValue {
        Self.acknowledgement(cursor, of: [self], milliseconds: milliseconds)
    }

    /// The acknowledgement document of several plans. `milliseconds` is the time that the rebuilds
    /// took; `nil` if nothing was rebuilt, so that no time is counted.
    static func acknowledgement(
        _ cursor: Cursor, of plans: [CanaryPlan], milliseconds: Int64?
    ) -> JSONValue {
        let rebuilt = plans.map { plan in
            var one: JSONObject = [
                "kind": .string(plan.kind), "parameters": plan.parameters,
            ]
            if let milliseconds { one["ms"] = .integer(milliseconds) }
            return JSONValue.object(one)
        }
        return ["cursor": .string(cursor.text), "rebuilt": .array(rebuilt)]
    }
}
