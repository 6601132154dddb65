import CatalogModel
import WidgetModel

/// Seals the versions of all apps, so that a node stores them once and not in each event loop.
///
/// It applies the same log as the event loops, in the same order. What it seals depends on the log
/// alone, and a loop may adopt it at any later time.
package struct VersionCompactor: Sendable {
    private struct AppState {
        var ruleSet: RuleSet
        var sealed: SealedVersions
        var recent = VersionTable()
    }

    /// The sequence of the last applied entry.
    package private(set) var position: UInt64
    /// The sequence up to which the compactor knows nothing.
    private let floor: UInt64
    private let keysMax: Int
    /// The number of keys that are sealed together.
    private let runKeys: Int
    private var apps: [String: AppState] = [:]

    /// Creates a compactor that has applied nothing and knows nothing of entries up to `floor`.
    package init(floor: UInt64, limits: CoreLimits = CoreLimits()) {
        position = floor
        self.floor = floor
        keysMax = max(16, limits.versionKeysMax)
        runKeys = max(1, min(limits.versionRunKeys, keysMax / 4))
    }

    /// Installs a catalog that is older than the log tail that the compactor is about to apply.
    package mutating func install(_ ruleSet: RuleSet) {
        let app = ruleSet.catalog.app
        guard apps[app] == nil else { return }
        apps[app] = AppState(
            ruleSet: ruleSet,
            sealed: SealedVersions(app: app, birth: ruleSet.sequence, floor: floor))
    }

    /// Applies the next entry of the log.
    ///
    /// - Returns: The versions of its app up to this entry, if they are due to be sealed.
    package mutating func apply(_ entry: LogEntry) -> SealedVersions? {
        guard entry.sequence > position else { return nil }
        let isGap = entry.sequence != position + 1
        position = entry.sequence
        if isGap { raiseFloors(to: entry.sequence - 1) }
        switch entry.body {
        case .catalog(let ruleSet):
            install(ruleSet)
            apps[entry.app]?.ruleSet = ruleSet
        case .removal: apps[entry.app] = nil
        case .change(let decision, _):
            return raise(of: entry) { recent, _ in
                decision.keys.visit { _, _, _, key in recent.raise(key.hash, to: entry.sequence) }
            }
        case .reload(let scope):
            return raise(of: entry) { recent, ruleSet in
                recent.raise(ruleSet.operatorKey(scope), to: entry.sequence)
            }
        case .start, .registration: break
        }
        return nil
    }

    private mutating func raise(
        of entry: LogEntry, _ body: (inout VersionTable, RuleSet) -> Void
    ) -> SealedVersions? {
        // Taken out, so that no table is copied to be changed.
        guard var app = apps.removeValue(forKey: entry.app) else { return nil }
        defer { apps[entry.app] = app }
        body(&app.recent, app.ruleSet)
        guard app.recent.count >= runKeys else { return nil }
        app.sealed.add(app.recent, through: entry.sequence, keysMax: keysMax)
        app.recent = VersionTable()
        return app.sealed
    }

    private mutating func raiseFloors(to sequence: UInt64) {
        for app in apps.keys {
            apps[app]?.recent.removeAll(upTo: sequence)
            apps[app]?.sealed.raiseFloor(to: sequence)
        }
    }
}
