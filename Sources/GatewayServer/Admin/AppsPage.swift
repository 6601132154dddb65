import GatewayCore
import NIOCore
import Synchronization
import WidgetModel

/// What the dashboard shows of apps and kinds. Staleness is that of a few clients of each app, picked
/// at random: to look at all of a million for a page would cost minutes.
final class AppsPage: Sendable {
    /// All clients of an app are counted, and some looked at, this often at most.
    private static let patience = TimeAmount.seconds(10)

    private struct Look: Sendable {
        var census = AppCensus()
        var kinds: [String: KindFreshness] = [:]
    }

    private let desk: OverviewDesk
    private let explainer: Explainer
    private let state = Mutex<(apps: [String: Look], due: NIODeadline)>(
        ([:], .uptimeNanoseconds(0)))

    private var sequencer: Sequencer { desk.page.sequencer }

    init(desk: OverviewDesk, explainer: Explainer) {
        (self.desk, self.explainer) = (desk, explainer)
    }

    /// Every app that has a catalog, with its kinds.
    func json() async -> JSONValue {
        await look()
        let kinds = desk.kinds()
        let looks = state.withLock { $0.apps }
        let apps = sequencer.ruleSets.map { ruleSet in
            Self.json(ruleSet, looks[ruleSet.catalog.app] ?? Look(), kinds)
        }
        return ["apps": .array(apps)]
    }

    // MARK: Looking

    /// Counts and looks anew if that is due; who comes meanwhile has what was seen before.
    private func look() async {
        let now = NIODeadline.now()
        let isDue = state.withLock { state in
            guard state.due <= now else { return false }
            state.due = now + Self.patience
            return true
        }
        guard isDue else { return }
        var looks = await census()
        for app in looks.keys {
            for key in looks[app]?.census.picks ?? [] {
                // A client that went meanwhile is not looked at.
                guard let client = try? await explainer.client(key)?.objectValue else { continue }
                for widget in client["widgets"]?.arrayValue ?? [] {
                    guard let widget = widget.objectValue, let kind = widget["kind"]?.stringValue,
                        case .bool(let isFresh)? = widget["fresh"]
                    else { continue }
                    looks[app]?.kinds[kind, default: KindFreshness()].count(
                        isStale: !isFresh,
                        since: widget["stale"]?.objectValue?["time"]?.stringValue)
                }
            }
        }
        let seen = looks
        state.withLock { $0 = (seen, .now() + Self.patience) }
    }

    private func census() async -> [String: Look] {
        let apps = Set(sequencer.ruleSets.map(\.catalog.app))
        var random = SystemRandomNumberGenerator()
        var looks: [String: Look] = [:]
        for part in 0..<Registry.partCount {
            sequencer.registry.look(part: part) { key, record in
                guard apps.contains(key.app) else { return }
                looks[key.app, default: Look()].census.count(key, record, using: &random)
            }
            await Task.yield()
        }
        return looks
    }

    // MARK: As JSON

    private static func json(
        _ ruleSet: RuleSet, _ look: Look,
        _ sent: [String: (recent: HistogramCounts, hour: HistogramCounts)]
    ) -> JSONValue {
        let kinds = ruleSet.catalog.widgets.map { widget in
            json(
                widget, look.census.widgets[widget.kind] ?? 0, look.kinds[widget.kind],
                sent[widget.kind])
        }
        return [
            "app": .string(ruleSet.catalog.app),
            "catalog": .integer(Int64(clamping: ruleSet.sequence)),
            "warnings": .array(ruleSet.catalog.warnings.map(\.json)),
            "clients": .integer(Int64(look.census.clients)),
            "clientsLookedAt": .integer(Int64(look.census.picks.count)), "kinds": .array(kinds),
        ]
    }

    private static func json(
        _ widget: WidgetDeclaration, _ count: Int, _ freshness: KindFreshness?,
        _ sent: (recent: HistogramCounts, hour: HistogramCounts)?
    ) -> JSONValue {
        var object: JSONObject = [
            "kind": .string(widget.kind), "configuration": .string(widget.configuration.rawValue),
            "widgets": .integer(Int64(count)),
            "looked": .integer(Int64(freshness?.looked ?? 0)),
            "stale": .integer(Int64(freshness?.stale ?? 0)),
        ]
        if let since = freshness?.since { object["staleSince"] = .string(since) }
        if let name = widget.displayName { object["displayName"] = .string(name) }
        if let sent {
            object["recent"] = sent.recent.json
            object["hour"] = sent.hour.json
        }
        return .object(object)
    }
}
