import CatalogModel
import GatewayCore
import WidgetModel

/// One item that a client holds: a recommendation set, a control or a widget.
struct Holding: Hashable, CustomStringConvertible {
    enum Form { case widget, control, set }
    let form: Form
    let kind: String
    let parameters: [String: ParameterValue]

    static func all(of registration: ClientRegistration) -> [Holding] {
        registration.widgets.map {
            Holding(form: .widget, kind: $0.kind, parameters: $0.parameters)
        }
            + registration.controls.map {
                Holding(form: .control, kind: $0.kind, parameters: $0.parameters)
            }
            + registration.recommendations.flatMap { set in
                set.items.map { Holding(form: .set, kind: set.kind, parameters: $0.parameters) }
            }
    }

    var description: String {
        let values = parameters.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.json.text)" }
        return "\(kind)\(form == .widget ? "" : ".\(form)")(\(values.joined(separator: " ")))"
    }

    /// Returns the target that a catalog makes of the holding, or `nil` while it sleeps.
    func target(in catalog: Catalog) -> Target? {
        guard let widget = catalog.widget(kind: kind) else { return nil }
        switch (form, widget.configuration) {
        case (.set, _): return .recommendations
        case (.control, .control): return .control
        case (.widget, .static), (.widget, .appIntent): return .timeline
        case (.widget, .relevance): return .relevance
        case (.control, _), (.widget, .control): return nil
        }
    }

    /// Returns the rules that apply to the holding.
    func rules(in catalog: Catalog) -> [DependencyRule] {
        guard target(in: catalog) != nil, let widget = catalog.widget(kind: kind) else { return [] }
        return form == .set ? widget.recommendations ?? [] : widget.dependsOn
    }

    /// Whether a notification's name includes the holding.
    func isNamed(by name: InvalidationTarget, in catalog: Catalog) -> Bool {
        name.kind == kind && name.target == target(in: catalog)
            && name.parameters.allSatisfy { parameter in
                switch (parameters[parameter.name] ?? .unset, parameter.value) {
                case (.unset, let value): value == nil
                case (_, nil): false
                case (.single(let own), let value?): own == value
                case (.list(let own), let value?): own.contains(value)
                }
            }
    }
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
            let widget = catalog.widget(kind: holding.kind)
        else { return [] }
        let intent = catalog.intent(of: widget)
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
                    guard target == .timeline else {
                        return InvalidationTarget(target, holding.kind)
                    }
                    return InvalidationTarget(
                        target, holding.kind, parameters.sorted { $0.name < $1.name })
                }
                hits.append(
                    NaiveHit(
                        rule: rule, target: target, key: way.0, live: name(way.1),
                        caughtUp: name(way.2)))
            }
        }
        return hits
    }

    /// Whether putting `new` after `old` makes a holding stale: its kind or role is new, or it has
    /// a rule whose content, including defaults, was not there before.
    static func isRenewed(_ holding: Holding, from old: Catalog?, to new: Catalog) -> Bool {
        guard holding.target(in: new) != nil else { return false }
        guard let old, let before = old.widget(kind: holding.kind),
            let after = new.widget(kind: holding.kind)
        else { return true }
        let wasRole = role(before.configuration)
        if wasRole != role(after.configuration) { return true }
        let known = contents(holding, old, before)
        return contents(holding, new, after).contains { !known.contains($0) }
    }

    private static func role(_ configuration: WidgetConfigurationType) -> Int {
        switch configuration {
        case .static, .appIntent: 0
        case .relevance: 1
        case .control: 2
        }
    }

    private struct Content: Hashable {
        let rule: DependencyRule
        let defaults: [ParameterValue]
    }

    private static func contents(
        _ holding: Holding, _ catalog: Catalog, _ widget: WidgetDeclaration
    ) -> Set<Content> {
        let rules = holding.form == .set ? widget.recommendations ?? [] : widget.dependsOn
        let intent = catalog.intent(of: widget)
        return Set(
            rules.map { rule in
                let defaults = rule.match.map { match -> ParameterValue in
                    guard case .parameter(let name) = match.binding else { return .unset }
                    return intent?.parameter(name)?.defaultValue ?? .unset
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
