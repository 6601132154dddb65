import CatalogModel
import GatewayCore
import WidgetModel

/// One item that a client holds: a recommendation set, a control, a widget or an activity.
struct Holding: Hashable, CustomStringConvertible {
    enum Form { case widget, control, set, activity }
    let form: Form
    let kind: String
    let parameters: [String: ParameterValue]
    /// The id of an activity; empty for anything else.
    var id = ""

    static func all(of registration: ClientRegistration) -> [Holding] {
        var all = registration.widgets.map {
            Holding(form: .widget, kind: $0.kind, parameters: $0.parameters)
        }
        all += registration.controls.map {
            Holding(form: .control, kind: $0.kind, parameters: $0.parameters)
        }
        all += registration.recommendations.flatMap { set in
            set.items.map { Holding(form: .set, kind: set.kind, parameters: $0.parameters) }
        }
        all += registration.activities.map {
            Holding(form: .activity, kind: $0.type, parameters: $0.attributes, id: $0.id)
        }
        return all
    }

    var description: String {
        let values = parameters.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.json.text)" }
        let suffix = form == .widget ? "" : ".\(form)\(id)"
        return "\(kind)\(suffix)(\(values.joined(separator: " ")))"
    }

    /// Returns the target that a catalog makes of the holding, or `nil` while it sleeps.
    func target(in catalog: Catalog) -> Target? {
        if form == .activity { return catalog.activity(type: kind) == nil ? nil : .activity }
        guard let widget = catalog.widget(kind: kind) else { return nil }
        switch (form, widget.configuration) {
        case (.set, _): return .recommendations
        case (.control, .control): return .control
        case (.widget, .static), (.widget, .appIntent): return .timeline
        case (.widget, .relevance): return .relevance
        case (.control, _), (.widget, .control), (.activity, _): return nil
        }
    }

    /// Returns what a catalog declares under the name of the holding's kind.
    func declaration(in catalog: Catalog) -> NaiveDeclaration? {
        if let activity = catalog.activity(type: kind) {
            return NaiveDeclaration(
                role: 3, rules: activity.dependsOn, intent: activity.intent, collapse: 0)
        }
        guard let widget = catalog.widget(kind: kind) else { return nil }
        let role =
            switch widget.configuration {
            case .static, .appIntent: 0
            case .relevance: 1
            case .control: 2
            }
        return NaiveDeclaration(
            role: role, rules: form == .set ? widget.recommendations ?? [] : widget.dependsOn,
            intent: catalog.intent(of: widget), collapse: widget.collapseMilliseconds)
    }

    /// Returns the rules that apply to the holding.
    func rules(in catalog: Catalog) -> [DependencyRule] {
        target(in: catalog) == nil ? [] : declaration(in: catalog)?.rules ?? []
    }

    /// Returns the name that a catch-up has for the holding if its whole kind is stale.
    func whole(_ target: Target) -> InvalidationTarget {
        InvalidationTarget(
            target, kind, form == .activity ? [.init(name: "", value: id)] : [])
    }

    /// Whether a notification's name includes the holding.
    func isNamed(by name: InvalidationTarget, in catalog: Catalog) -> Bool {
        name.kind == kind && name.target == target(in: catalog)
            && name.parameters.allSatisfy { parameter in
                if parameter.name.isEmpty { return parameter.value == id }
                return switch (parameters[parameter.name] ?? .unset, parameter.value) {
                case (.unset, let value): value == nil
                case (_, nil): false
                case (.single(let own), let value?): own == value
                case (.list(let own), let value?): own.contains(value)
                }
            }
    }
}

/// A catalog's declaration of one name.
struct NaiveDeclaration {
    /// The sort of declaration; another sort under the same name is a new kind.
    let role: Int
    let rules: [DependencyRule]
    let intent: IntentDeclaration?
    /// The collapse window, ms.
    let collapse: Int64
}

/// One way in which a change hits a holding: the rule, and at each bound parameter or attribute
/// either the client's own value, or the fact that the change lacks the attribute.
struct NaiveHit: Hashable {
    let rule: DependencyRule
    let target: Target
    /// The key that collapses together, with one text for each binding.
    let key: [String]
    /// The name that a stream sends at once, and the name that a catch-up sends.
    let live: InvalidationTarget
    let caughtUp: InvalidationTarget
}

/// The definition of when a change hits a holding, implemented literally without keys or hashes.
enum NaiveModel {
    static func changeValues(_ change: Change, _ attribute: String) -> [String]? {
        attribute == "id" ? change.id.map { [$0] } : change.attributes[attribute]
    }

    /// Returns every way in which `change` hits `holding` under `catalog`.
    static func hits(
        _ change: Change, _ holding: Holding, attributes: [String: [String]], _ catalog: Catalog
    ) -> [NaiveHit] {
        guard let target = holding.target(in: catalog),
            let intent = holding.declaration(in: catalog).map(\.intent)
        else { return [] }
        var hits: [NaiveHit] = []
        for rule in holding.rules(in: catalog) {
            guard rule.entity == change.entity, rule.operations.contains(change.operation),
                change.operation != .update || rule.properties.isEmpty || change.properties.isEmpty
                    || !Set(rule.properties).isDisjoint(with: change.properties)
            else { continue }
            // Each way so far has the key's texts, the parameters named at once, and those of a
            // catch-up.
            typealias Parameters = [ReloadNotification.Parameter]
            var ways: [([String], Parameters, Parameters)] = [([], [], [])]
            for match in rule.match {
                let changed = changeValues(change, match.attribute)
                func agrees(_ own: String) -> Bool { changed?.contains(own) ?? true }
                var choices: [(String, Parameters, Parameters)] = []
                switch match.binding {
                case .literal(let text):
                    if agrees(text) { choices = [("", [], [])] }
                case .clientAttribute(let name):
                    choices = (attributes[name] ?? []).filter(agrees).map {
                        (changed == nil ? "?" : "=" + $0, [], [])
                    }
                case .parameter(let name):
                    switch holding.parameters[name] ?? .unset {
                    case .unset:
                        let standIn = intent?.parameter(name)?.defaultValue ?? .unset
                        if standIn == .unset || changed == nil
                            || standIn.texts.contains(where: agrees)
                        {
                            let named = [ReloadNotification.Parameter(name: name, value: nil)]
                            choices = [
                                changed == nil ? ("?", [], named) : ("-", named, named)
                            ]
                        }
                    case .list([]):
                        if changed == nil { choices = [("?", [], [])] }
                    case let value:
                        choices = value.texts.filter(agrees).map {
                            let named = [ReloadNotification.Parameter(name: name, value: $0)]
                            return changed == nil ? ("?", [], named) : ("=" + $0, named, named)
                        }
                    }
                }
                ways = ways.flatMap { way in
                    choices.map { (way.0 + [$0.0], way.1 + $0.1, way.2 + $0.2) }
                }
            }
            for way in ways {
                func name(_ parameters: Parameters) -> InvalidationTarget {
                    guard target == .timeline || target == .activity else {
                        return InvalidationTarget(target, holding.kind)
                    }
                    return InvalidationTarget(
                        target, holding.kind, parameters.sorted { $0.name < $1.name })
                }
                hits.append(
                    NaiveHit(
                        rule: rule, target: target, key: way.0, live: name(way.1),
                        caughtUp: target == .activity ? holding.whole(target) : name(way.2)))
            }
        }
        return hits
    }

    /// Whether putting `new` after `old` makes a holding stale: its kind or role is new, or it has
    /// a rule whose content, including defaults, was not there before.
    static func isRenewed(_ holding: Holding, from old: Catalog?, to new: Catalog) -> Bool {
        guard holding.target(in: new) != nil else { return false }
        guard let old, let before = holding.declaration(in: old),
            let after = holding.declaration(in: new), before.role == after.role
        else { return true }
        let known = contents(before)
        return contents(after).contains { !known.contains($0) }
    }

    private struct Content: Hashable {
        let rule: DependencyRule
        let defaults: [ParameterValue]
    }

    private static func contents(_ declaration: NaiveDeclaration) -> Set<Content> {
        Set(
            declaration.rules.map { rule in
                let defaults = rule.match.map { match -> ParameterValue in
                    guard case .parameter(let name) = match.binding else { return .unset }
                    return declaration.intent?.parameter(name)?.defaultValue ?? .unset
                }
                return Content(rule: rule, defaults: defaults)
            })
    }
}

extension InvalidationTarget: CustomStringConvertible {
    /// A short text of the name, for the notes of a failing history.
    public var description: String {
        let values = parameters.map { "\($0.name)=\($0.value ?? "null")" }
        return "\(target) \(kind)(\(values.joined(separator: " ")))"
    }
}

extension StaleSet: CustomStringConvertible {
    /// A short text of the set, for the notes of a failing history.
    public var description: String { all ? "all at \(sequence)" : "\(names) at \(sequence)" }
}
