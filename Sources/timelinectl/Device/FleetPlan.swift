import CatalogModel
import WidgetModel

/// The widgets that each simulated device has placed, and which of them a change concerns.
/// Determined by the catalog, the clients and the seed alone.
///
/// It compares changes and widgets by the terms of the catalog and shares no code with the gateway,
/// so that the two can disagree.
struct FleetPlan: Sendable {
    struct Device: Sendable {
        let client: SimulatedClient
        let registration: ClientRegistration
        /// The number of its first timeline; the others follow, in the order of its widgets.
        let firstTimeline: Int
    }

    /// A rule, and the timelines that depend on each combination of values through it.
    private struct Dependents: Sendable {
        let intent: IntentDeclaration?
        let rule: DependencyRule
        var timelines: [[String]: [Int]] = [:]
    }

    /// The maximum number of widgets per device.
    static let widgetsMax = 4

    private(set) var devices: [Device] = []
    /// The kind of each timeline, as an index into ``kinds``.
    private(set) var timelineKinds: [Int] = []
    /// The kinds that can be placed, in the catalog's order.
    let kinds: [WidgetDeclaration]
    private let popularity: Popularity
    private var dependents: [Dependents] = []
    private var dependentsOfKind: [[Int]] = []

    /// `items` is the number of distinct values of a parameter or attribute. `nil` if the catalog
    /// has no widget that a person can place.
    init?(catalog: Catalog, clients: [SimulatedClient], items: Int, seed: UInt64) {
        let placeable = catalog.widgets.filter {
            ($0.configuration == .static || $0.configuration == .appIntent)
                && !$0.families.isEmpty
        }
        guard !placeable.isEmpty else { return nil }
        kinds = placeable
        popularity = Popularity(ranks: items)
        for kind in placeable {
            let first = dependents.count
            dependents += kind.dependsOn.map {
                Dependents(intent: catalog.intent(of: kind), rule: $0)
            }
            dependentsOfKind.append(Array(first..<dependents.count))
        }
        for (number, client) in clients.enumerated() {
            var generator = SplitMix64(seed: seed &+ UInt64(number) &* 0x9E37_79B9)
            place(on: client, catalog, using: &generator)
        }
    }

    private mutating func place(
        on client: SimulatedClient, _ catalog: Catalog, using generator: inout SplitMix64
    ) {
        let device = Device(
            client: client,
            registration: ClientRegistration(
                platform: Self.platform(offering: kinds, using: &generator),
                widgets: []), firstTimeline: timelineKinds.count)
        var registration = device.registration
        let offered = kinds.indices.filter {
            WidgetFamilies.isOffered(
                on: registration.platform, declared: kinds[$0].platforms)
        }
        for _ in 0..<Int.random(in: 1...Self.widgetsMax, using: &generator) {
            guard let place = offered.randomElement(using: &generator) else { break }
            let kind = kinds[place]
            let intent = catalog.intent(of: kind)
            let widget = ConfiguredWidget(
                kind: kind.kind,
                family: Self.family(of: kind, on: registration.platform),
                parameters: Dictionary(
                    (intent?.parameters ?? []).map { ($0.name, value(of: $0, using: &generator)) },
                    uniquingKeysWith: { $1 }))
            // Widgets with the same configuration share one timeline.
            guard !registration.widgets.contains(widget) else { continue }
            registration.widgets.append(widget)
            for dependent in dependentsOfKind[place] {
                guard
                    let values = Self.values(
                        of: widget, attributes: client.attributes, by: dependents[dependent].rule)
                else { continue }
                dependents[dependent].timelines[values, default: []].append(timelineKinds.count)
            }
            timelineKinds.append(place)
        }
        devices.append(
            Device(
                client: client, registration: registration, firstTimeline: device.firstTimeline))
    }

    private static func platform(
        offering kinds: [WidgetDeclaration], using generator: inout SplitMix64
    ) -> String {
        let offering = WidgetFamilies.platforms.filter { platform in
            kinds.contains { WidgetFamilies.isOffered(on: platform, declared: $0.platforms) }
        }
        return offering.randomElement(using: &generator) ?? "iOS"
    }

    private static func family(of kind: WidgetDeclaration, on platform: String) -> String {
        kind.families.first { WidgetFamilies.table[$0]?.contains(platform) ?? true }
            ?? kind.families.first ?? ""
    }

    /// A value that a person would choose, in the notation of a change.
    private func text(_ type: ParameterType?, using generator: inout SplitMix64) -> String {
        let rank = popularity.draw(using: &generator)
        return switch type?.name {
        case "Int", "Double": String(rank)
        case "Bool": rank % 2 == 0 ? "true" : "false"
        default: Self.item(rank)
        }
    }

    /// The value with this rank; programs other than the simulator can post it too.
    static func item(_ rank: Int) -> String { "item-\(rank)" }

    private func value(
        of parameter: ParameterDeclaration, using generator: inout SplitMix64
    ) -> ParameterValue {
        let text = text(parameter.type, using: &generator)
        return parameter.type.isArray ? .list([text]) : .single(text)
    }

    /// The values that a rule compares for a widget; `nil` if the widget matches no change.
    private static func values(
        of widget: ConfiguredWidget, attributes: [String: [String]], by rule: DependencyRule
    ) -> [String]? {
        var values: [String] = []
        for match in rule.match {
            let text: String?
            switch match.binding {
            case .literal(let literal): text = literal
            case .parameter(let name): text = widget.parameters[name]?.texts.first
            case .clientAttribute(let name): text = attributes[name]?.first
            }
            guard let text else { return nil }
            values.append(text)
        }
        return values
    }

    // MARK: Changes

    /// A change with every value that rules ask for, so that it concerns exactly the matching
    /// timelines.
    func change(using generator: inout SplitMix64) -> Change? {
        guard let drawn = dependents.randomElement(using: &generator) else { return nil }
        let entity = drawn.rule.entity
        var attributes: [String: String] = ["id": text(nil, using: &generator)]
        for dependent in [drawn] + dependents where dependent.rule.entity == entity {
            for match in dependent.rule.match {
                let isDrawn = dependent.rule == drawn.rule
                guard isDrawn || attributes[match.attribute] == nil else { continue }
                switch match.binding {
                case .literal(let literal): attributes[match.attribute] = literal
                case .parameter(let name):
                    attributes[match.attribute] = text(
                        dependent.intent?.parameter(name)?.type, using: &generator)
                case .clientAttribute:
                    attributes[match.attribute] = text(nil, using: &generator)
                }
            }
        }
        let id = attributes.removeValue(forKey: "id")
        let operations = Change.Operation.allCases.filter { drawn.rule.operations.contains($0) }
        return Change(
            entity: entity, id: id,
            operation: operations.contains(.update) ? .update : operations.first ?? .update,
            properties: drawn.rule.properties.randomElement(using: &generator).map { [$0] } ?? [],
            attributes: attributes.mapValues { [$0] }, urgency: .normal)
    }

    /// The timelines that a change of ``change(using:)`` makes stale.
    func timelines(concernedBy change: Change) -> Set<Int> {
        var concerned: Set<Int> = []
        for dependent in dependents {
            let rule = dependent.rule
            guard rule.entity == change.entity, rule.operations.contains(change.operation),
                rule.properties.isEmpty || change.properties.isEmpty
                    || !Set(rule.properties).isDisjoint(with: change.properties)
            else { continue }
            let values = rule.match.compactMap { match in
                match.attribute == "id" ? change.id : change.attributes[match.attribute]?.first
            }
            concerned.formUnion(dependent.timelines[values] ?? [])
        }
        return concerned
    }
}
