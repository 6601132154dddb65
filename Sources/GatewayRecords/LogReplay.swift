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
    /// The catalogs in force.
    package private(set) var catalogs: CatalogState
    /// The registrations and log bytes of every app on disk.
    package private(set) var usage = UsageTable()

    /// Replays a store.
    ///
    /// - Parameter register: Called with each registration, and with the time at which its client
    ///   was last seen, in milliseconds since 1970; there may be a million of them.
    /// - Throws: `StoreError`; ``UnreadableRow``.
    package init(
        of store: SQLiteStore, limits: Limits, coreLimits: CoreLimits,
        register: (_ record: ClientRecord, _ app: String, _ seenAt: Int64) -> Void = { _, _, _ in
        }
    ) throws {
        hashes = try StoreHashes(secret: store.secret)
        catalogs = CatalogState(decider: Decider(hash: hashes.keys, limits: limits))
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
        var bySequence: [UInt64: (catalog: Catalog, document: CatalogDocument)] = [:]
        for row in try store.catalogs() {
            usage.add(row)
            let read = try catalog(row)
            if row.sequence <= store.floor {
                let ruleSet = install(read.catalog, read.document)
                shard.install(ruleSet)
                compactor.install(ruleSet)
            } else {
                bySequence[row.sequence] = read
            }
        }
        try store.replay(after: store.floor, batch: 1000) { rows in
            for row in rows {
                usage.add(row)
                let body: LogEntry.Body
                switch row.type {
                case .change:
                    let (change, cause) = try UnreadableRow.naming(
                        "the change at \(row.sequence)"
                    ) { try LogPayload.readChange(row.payload, limits: .none) }
                    body = catalogs.decider.replay(change, app: row.app, cause: cause)
                case .catalog:
                    if let (catalog, document) = bySequence[row.sequence] {
                        body = .catalog(install(catalog, document))
                    } else {
                        withoutDocument.insert(row.app)
                        body = .removal
                    }
                case .removal:
                    withoutDocument.remove(row.app)
                    catalogs.remove(app: row.app, at: row.sequence)
                    body = .removal
                case .reload:
                    let scope = try UnreadableRow.naming("the reload at \(row.sequence)") {
                        try LogPayload.readReload(row.payload)
                    }
                    body = .reload(scope)
                }
                let entry = LogEntry(
                    sequence: row.sequence, app: row.app, acceptedAt: row.acceptedAt, body: body)
                shard.apply(entry, now: 0)
                if let sealed = compactor.apply(entry) { shard.adopt(sealed) }
            }
        }
        if let app = withoutDocument.min() {
            throw UnreadableRow(row: "the catalog of the app \(app)", reason: "it is missing")
        }
    }

    private func catalog(_ row: CatalogRow) throws -> (catalog: Catalog, document: CatalogDocument)
    {
        try UnreadableRow.naming("the catalog of the app \(row.app)") {
            try CatalogDocument.read(row.payload, of: row.app, at: row.sequence, hashes)
        }
    }

    private mutating func install(_ catalog: Catalog, _ document: CatalogDocument) -> RuleSet {
        catalogs.install(catalog, document, hashes)
    }
}
