import GatewayCore
import WidgetModel

/// What the dashboard shows of apps and kinds.
struct AppsPage: Sendable {
    let desk: OverviewDesk

    private var sequencer: Sequencer { desk.page.sequencer }

    /// Every app that has a catalog, with its kinds.
    func json() async throws -> JSONValue {
        let kinds = desk.kinds()
        return [
            "apps": .array(
                sequencer.ruleSets.map { ruleSet in
                    [
                        "app": .string(ruleSet.catalog.app),
                        "catalog": .integer(Int64(clamping: ruleSet.sequence)),
                        "warnings": .array(ruleSet.catalog.warnings.map(\.json)),
                        "kinds": .array(
                            ruleSet.catalog.widgets.map { Self.json($0, kinds[$0.kind]) }),
                    ]
                })
        ]
    }

    private static func json(
        _ widget: WidgetDeclaration, _ sent: (recent: HistogramCounts, hour: HistogramCounts)?
    ) -> JSONValue {
        var object: JSONObject = [
            "kind": .string(widget.kind), "configuration": .string(widget.configuration.rawValue),
            "families": .array(widget.families.map { .string($0) }),
            "platforms": .array(widget.platforms.map { .string($0) }),
            "rules": .integer(Int64(widget.dependsOn.count)),
            "recommendationRules": .integer(Int64(widget.recommendations?.count ?? 0)),
            "collapseMilliseconds": .integer(widget.collapseMilliseconds),
        ]
        if let name = widget.displayName { object["displayName"] = .string(name) }
        if let sent {
            object["recent"] = sent.recent.json
            object["hour"] = sent.hour.json
        }
        return .object(object)
    }
}
