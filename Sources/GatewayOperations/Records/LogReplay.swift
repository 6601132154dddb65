import Foundation
import GatewayCore
import GatewayStorage
import WidgetModel

/// The in-memory state, rebuilt from the registrations and the log's tail: rule sets, versions,
/// usage. Does not change the store.
package struct LogReplay {
    /// The hashes with keys from the store's secret.
    package let hashes: StoreHashes
    /// The shard that every event loop starts with: the versions of all keys, and no stream.
    package private(set) var shard: Shard
    /// The compactor that goes on sealing the versions of the shards.
    package private(set) var compactor: VersionCompactor
    /// The recent starts of Live Activities.
    package private(set) var starts = RecentStarts()
    private var decoder: LogDecoder
    /// The catalogs in force.
    package var catalogs: CatalogState { decoder.catalogs }
    /// The registrations and log bytes of every app on disk.
    package private(set) var usage = UsageTable()

    /// Replays a store. Throws `StoreError` or ``UnreadableRow``.
    ///
    /// - Parameter register: Called with each registration, of which there may be a million, and
    ///   with the time at which its client was last seen, in milliseconds since 1970.
    package init(
        of store: SQLiteStore, limits: Limits, coreLimits: CoreLimits,
        register: (_ record: ClientRecord, _ app: String, _ seenAt: Int64) -> Void = { _, _, _ in
        }
    ) throws {
        hashes = try StoreHashes(secret: store.secret)
        decoder = LogDecoder(
            catalogs: CatalogState(decider: Decider(hash: hashes.keys, limits: limits)),
            hashes: hashes)
        shard = Shard(floor: store.floor, limits: coreLimits)
        compactor = VersionCompactor(floor: store.floor, limits: coreLimits)
        try replayRegistrations(of: store, register: register)
        try replayLog(of: store)
    }

    private mutating func replayRegistrations(
        of store: SQLiteStore,
        register: (_ record: ClientRecord, _ app: String, _ seenAt: Int64) -> Void
    ) throws {
        try store.registrations { rows in
            for row in rows {
                usage.add(row)
                let stored = try UnreadableRow.naming("the registration of", row.key) {
                    try StoredRegistration(row.payload, limits: .none)
                }
                register(stored.record(of: row.key.client), row.key.app, row.seenAt)
            }
        }
    }

    private mutating func replayLog(of store: SQLiteStore) throws {
        // Catalogs are deleted with their app, and before the rows that announced them.
        var withoutDocument: Set<String> = []
        var announced: [UInt64: CatalogRow] = [:]
        for row in try store.catalogs() {
            usage.add(row)
            if row.sequence <= store.floor {
                let ruleSet = try decoder.install(row)
                shard.install(ruleSet)
                compactor.install(ruleSet)
            } else {
                announced[row.sequence] = row
            }
        }
        try store.replay(after: store.floor, batch: 1000) { rows in
            for row in rows {
                usage.add(row)
                let catalog = announced.removeValue(forKey: row.sequence)
                switch row.type {
                case .catalog where catalog == nil: withoutDocument.insert(row.app)
                case .removal: withoutDocument.remove(row.app)
                case .catalog, .change, .reload, .start: break
                }
                let entry = try decoder.entry(of: row, catalog: catalog)
                starts.apply(entry)
                shard.apply(entry, now: 0)
                if let sealed = compactor.apply(entry) { shard.adopt(sealed) }
            }
        }
        if let app = withoutDocument.min() {
            throw UnreadableRow(row: "the catalog of the app \(app)", reason: "it is missing")
        }
    }
}
