import CatalogModel
import GatewayCore
import GatewayDocuments
import GatewayEngine
import GatewayTelemetry
import Synchronization
import WidgetModel

/// The dashboard's page of apps and kinds. Staleness is that of a few clients of each app, picked
/// at random: checking all of a million clients for a page would take minutes.
package final class AppsPage: Sendable {
    /// The minimum interval between two censuses, in milliseconds: each counts all clients of an
    /// app and checks some.
    private static let patience: Int64 = 10_000

    private struct AppSnapshot: Sendable {
        var statusCounts = AppCensus()
        var kinds: [String: KindFreshness] = [:]
    }

    private let sampler: OverviewSampler
    private let explainer: Explainer
    private let engine: Engine
    private let state = Mutex<(apps: [String: AppSnapshot], due: Int64)>(([:], 0))

    package init(sampler: OverviewSampler, explainer: Explainer, engine: Engine) {
        (self.sampler, self.explainer, self.engine) = (sampler, explainer, engine)
    }

    /// Returns every app that has a catalog, with its kinds.
    func document() async -> AppList {
        await look()
        let (kinds, looks) = (sampler.kinds(), state.withLock { $0.apps })
        let needless = sampler.page.metrics.registry.counts(of: .needlessReloads, by: 0)
        var list = AppList()
        list.apps = engine.catalogs.ruleSets.map { ruleSet in
            let look = looks[ruleSet.catalog.app] ?? AppSnapshot()
            return Self.status(ruleSet, look, kinds, needless: needless)
        }
        return list
    }

    // MARK: Sampling

    /// Counts and checks clients again if that is due; concurrent callers get the previous results.
    private func look() async {
        let now = engine.clock.now()
        let isDue = state.withLock { state in
            guard state.due <= now else { return false }
            state.due = now + Self.patience
            return true
        }
        guard isDue else { return }
        var looks = await statusCounts()
        for app in looks.keys {
            for key in looks[app]?.statusCounts.picks ?? [] {
                // A client removed in the meantime is skipped.
                guard let client = try? await explainer.client(key) else { continue }
                for widget in client.widgets {
                    guard let kind = widget.kind, let isFresh = widget.fresh else { continue }
                    looks[app]?.kinds[kind, default: KindFreshness()].count(
                        isStale: !isFresh, since: widget.stale?.time)
                }
            }
        }
        let seen = looks
        state.withLock { $0 = (seen, engine.clock.now() + Self.patience) }
    }

    private func statusCounts() async -> [String: AppSnapshot] {
        let ruleSets = Dictionary(
            engine.catalogs.ruleSets.map { ($0.catalog.app, $0) }, uniquingKeysWith: { $1 })
        var random = SystemRandomNumberGenerator()
        var looks = ruleSets.mapValues { AppSnapshot(statusCounts: AppCensus($0)) }
        for part in 0..<Registry.partCount {
            engine.registry.look(part: part) { key, record in
                looks[key.app]?.statusCounts.count(key, record, using: &random)
            }
            await Task.yield()
        }
        return looks
    }

    // MARK: Documents

    private static func status(
        _ ruleSet: RuleSet, _ look: AppSnapshot,
        _ sent: [String: (recent: HistogramCounts, hour: HistogramCounts)],
        needless: [String: UInt64]
    ) -> AppStatus {
        var status = AppStatus()
        status.app = ruleSet.catalog.app
        status.catalog = ruleSet.sequence
        status.warnings = ruleSet.catalog.warnings
        status.clients = look.statusCounts.clients
        status.clientsLookedAt = look.statusCounts.picks.count
        status.kinds = ruleSet.catalog.widgets.map { widget in
            let freshness = look.kinds[widget.kind]
            var kind = AppStatus.Kind()
            kind.kind = widget.kind
            kind.configuration = widget.configuration.rawValue
            kind.widgets = look.statusCounts.widgets[widget.kind] ?? 0
            kind.looked = freshness?.looked ?? 0
            kind.stale = freshness?.stale ?? 0
            kind.staleSince = freshness?.since
            if let lacking = look.statusCounts.lacking[widget.kind] {
                kind.clientsLacking = lacking
                kind.lacking = ruleSet.attributeNeeds(ofKind: widget.kind, sets: false)
                    .lacked(by: [:])
            }
            kind.displayName = widget.displayName
            kind.recent = sent[widget.kind]?.recent.quantiles
            kind.hour = sent[widget.kind]?.hour.quantiles
            kind.needless = needless[widget.kind]
            return kind
        }
        return status
    }
}
