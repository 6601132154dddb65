import Foundation
import GatewayCore
import GatewayEngine
import GatewayPostgres
import GatewayRecords
import WidgetModel

/// The state with which a node begins: a snapshot, or the log's floor. It reads the log from there.
package struct NodeStart: Sendable {
    /// A catalog in force, with the versions of the app's keys where a snapshot has them.
    private struct App {
        let ruleSet: RuleSet
        let document: CatalogDocument
        let versions: CompactedVersions?
    }

    /// The place in the log, with its epochs.
    package let log: LogStart
    /// The sequence up to which nothing is known.
    package let floor: UInt64
    /// The tags of the newest batches, that of ``position`` included.
    package let tags: BatchTags
    /// The account for operators.
    package let report: StartReport
    /// The number of keys that a version window remembers, as fixed for the log.
    package let keysMax: Int

    private let apps: [App]
    private let removals: [String: UInt64]

    /// The last batch that the state contains.
    package var position: LogPosition { log.position }

    /// Creates the state of a snapshot, or of the floor if none was read.
    ///
    /// - Parameter log: The start as of the position that was read.
    /// - Returns: `nil` if the snapshot does not have the log's catalogs.
    /// - Throws: ``LogApplication/Unreadable`` for a catalog.
    package init?(
        _ outcome: SnapshotReader.Outcome, _ log: LogStart, _ hashes: StoreHashes
    ) throws(LogApplication.Unreadable) {
        self.log = log
        keysMax = outcome.keysMax
        floor = UInt64(clamping: outcome.snapshot?.floor ?? log.position.last)
        report = StartReport(
            position: log.position.last, floor: floor,
            age: outcome.snapshot.map { _ in outcome.age }, misfits: outcome.misfits)
        var tags = outcome.snapshot?.tags ?? BatchTags()
        if tags.newest?.last != log.position.last { tags.append(log.position) }
        self.tags = tags
        var stored: [String: NodeSnapshot.App] = [:]
        for app in outcome.snapshot?.apps ?? [] { stored[app.name] = app }
        var removals = outcome.snapshot?.removals ?? [:]
        var apps: [App] = []
        for row in log.catalogs {
            let sequence = UInt64(clamping: row.sequence)
            guard let payload = row.payload else {
                removals[row.app] = max(sequence, removals[row.app] ?? 0)
                continue
            }
            let (catalog, document) = try Self.read(payload, row, hashes)
            guard outcome.snapshot != nil else {
                let ruleSet = RuleSet(
                    catalog, sequence: sequence, replacing: nil, hash: hashes.keys)
                apps.append(App(ruleSet: ruleSet, document: document, versions: nil))
                continue
            }
            guard let app = stored.removeValue(forKey: row.app), app.history.sequence == sequence,
                let ruleSet = RuleSet(catalog, restoring: app.history, hash: hashes.keys)
            else { return nil }
            apps.append(App(ruleSet: ruleSet, document: document, versions: app.versions))
        }
        guard stored.isEmpty else { return nil }
        self.apps = apps
        self.removals = removals
    }

    private static func read(
        _ payload: [UInt8], _ row: LogStart.Catalog, _ hashes: StoreHashes
    ) throws(LogApplication.Unreadable) -> (Catalog, CatalogDocument) {
        let sequence = UInt64(clamping: row.sequence)
        do {
            return try CatalogDocument.read(Data(payload), of: row.app, at: sequence, hashes)
        } catch {
            throw LogApplication.Unreadable(sequence: sequence, reason: "\(error)")
        }
    }

    /// Returns the state of an engine that has applied the log up to ``position``.
    package func state(
        _ configuration: EngineConfiguration, _ hashes: StoreHashes
    ) -> StartState {
        var limits = configuration.coreLimits
        limits.versionKeysMax = keysMax
        let position = UInt64(clamping: position.last)
        var shard = Shard(position: position, floor: floor, limits: limits)
        var compactor = VersionCompactor(position: position, floor: floor, limits: limits)
        var state = CatalogState(
            decider: Decider(hash: hashes.keys, limits: configuration.limits))
        for (app, sequence) in removals { state.remove(app: app, at: sequence) }
        for app in apps {
            state.install(app.ruleSet, app.document)
            if let versions = app.versions {
                shard.install(app.ruleSet, versions: versions)
                compactor.install(app.ruleSet, versions: versions)
            } else {
                shard.install(app.ruleSet)
                compactor.install(app.ruleSet)
            }
        }
        return StartState(shard: shard, compactor: compactor, catalogs: state, hashes: hashes)
    }
}
