import Foundation
import GatewayCore
import GatewayDelivery
import GatewaySigning
import GatewayStorage
import GatewayTLS
import Logging
import NIOCore
import WidgetModel

/// Rebuilds what lives in memory from the store: rule sets, versions, registrations, epochs.
enum LogReplay {
    /// What a gateway runs on.
    struct Built {
        let sequencer: Sequencer
        let loops: ShardLoops
        let desk: CursorDesk
        /// `nil` where nothing is pushed.
        let push: PushLoop?
    }

    /// Opens an epoch, then builds one shard for each loop and replays the log's tail into it.
    ///
    /// - Throws: `StoreError`; what `LogPayload` throws for rows that cannot be read.
    static func build(
        _ configuration: GatewayConfiguration, _ store: SQLiteStore, _ press: NotificationPress,
        _ metrics: GatewayMetrics, _ tlsSettings: TLSServerSettings,
        _ eventLoops: [any EventLoop], _ pushLoop: (any EventLoop)?,
        _ clock: DeliveryClock, _ logger: Logger, tracing: GatewayTracing? = nil
    ) throws -> Built {
        let hash = SipHash(secret: Array(store.secret))
        let registry = Registry(streamsMax: configuration.streamsPerClient)
        try restoreRegistrations(store, registry)
        var decider = Decider(hash: hash, limits: configuration.limits)
        var shard = Shard(floor: store.floor, limits: configuration.coreLimits)
        let (documents, removals) = try replay(store, hash, &decider, &shard)
        var push: PushLoop?
        if let pushLoop {
            let desk = PushDesk(shard, terms: configuration.push.terms, hash: hash)
            push = PushLoop(
                loop: pushLoop, desk: try pushDesk(desk, store, registry, clock), clock: clock,
                metrics: metrics, tracing: tracing, logger: logger)
        }
        let desk = try openEpoch(store, hash, registry, push, logger)
        let loops = eventLoops.map { loop in
            ShardLoop(
                loop: loop, shard: shard, settings: configuration.streams,
                tlsSettings: tlsSettings, press: press, registry: registry, metrics: metrics,
                cursors: desk, push: push, tracing: tracing, logger: logger)
        }
        let sequencer = Sequencer(
            store: store, registry: registry, desk: desk, metrics: metrics,
            limits: configuration.limits, hash: hash,
            state: .init(decider: decider, documents: documents, removals: removals),
            loops: loops, push: push, tracing: tracing)
        return Built(sequencer: sequencer, loops: ShardLoops(loops), desk: desk, push: push)
    }

    /// Gives a desk the clients that can be pushed to, with what was kept of them.
    private static func pushDesk(
        _ desk: consuming PushDesk, _ store: SQLiteStore, _ registry: Registry,
        _ clock: DeliveryClock
    ) throws -> PushDesk {
        var saved: [ClientKey: PushDesk.SavedClient] = [:]
        try store.pushClients { rows in
            for row in rows {
                guard let payload = row.payload else { continue }
                saved[ClientKey(app: row.key.app, client: row.key.client)] =
                    try PushClientPayload.read(payload)
            }
        }
        let (now, wall) = (clock.now(), clock.wall())
        for (key, record) in registry.pushable {
            desk.restore(record, app: key.app, saved[key], now: now, wall: wall)
        }
        if try store.hasVoidPositions() {
            // A tail of the log is lost, and who is only pushed to shows no cursor that would tell.
            desk.forgetPositions(now: now)
            let changed = desk.takeChanged(limit: .max, now: now, wall: wall)
            try store.replaceVoidPositions(
                with: changed.map { key, saved in
                    PushClientRow(
                        key: RegistrationKey(app: key.app, client: key.client),
                        payload: saved.map(PushClientPayload.data))
                })
        }
        return desk
    }

    private static func openEpoch(
        _ store: SQLiteStore, _ hash: SipHash, _ registry: Registry, _ push: PushLoop?,
        _ logger: Logger
    ) throws -> CursorDesk {
        let nonce = try secureRandom(count: 8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let opened = try store.openEpoch(
            id: nonce, now: Int64(Date().timeIntervalSince1970 * 1000), voidOlder: false)
        let epochs = try store.epochs().map {
            EpochLedger.Epoch(
                id: EpochID($0), openedAt: $0.openedAtSequence, isVoid: $0.isVoid)
        }
        return CursorDesk(
            seal: CursorSeal(hash), ledger: EpochLedger(epochs), epoch: EpochID(opened),
            head: { store.head },
            voidOlder: {
                logger.error(
                    "a client knows changes that this log has lost: all older cursors are void")
                registry.forgetHearing()
                push?.submit([.lostTail])
                // Off the event loops: it writes to disk. The ledger in memory is void already.
                DispatchQueue.global().async {
                    do {
                        try store.voidEpochs(before: opened.ordinal)
                    } catch {
                        logger.error(
                            "older epochs could not be voided", metadata: ["error": "\(error)"])
                    }
                }
            })
    }

    private static func restoreRegistrations(
        _ store: SQLiteStore, _ registry: Registry
    ) throws {
        try store.registrations { rows in
            for row in rows {
                let stored = try StoredRegistration(row.payload, limits: .none)
                registry.put(
                    stored.record(of: row.key.client), app: row.key.app, at: store.head,
                    isRestored: true)
            }
        }
    }

    /// Replays the tail; returns the catalogs in force at its end, as they were put, and where apps
    /// were removed.
    private static func replay(
        _ store: SQLiteStore, _ hash: SipHash, _ decider: inout Decider, _ shard: inout Shard
    ) throws -> ([String: CatalogDocument], removals: [String: UInt64]) {
        var documents: [String: CatalogDocument] = [:]
        var removals: [String: UInt64] = [:]
        // Catalogs go when their app does, and before the rows that announced them.
        var withoutDocument: Set<String> = []
        var bySequence: [UInt64: (Catalog, CatalogDocument)] = [:]
        for row in try store.catalogs() {
            let (contentType, body) = try LogPayload.readCatalog(row.payload)
            let catalog = try Catalog(
                contentType: contentType, body: body, app: row.app, limits: .none)
            let document = CatalogDocument(
                sequence: row.sequence, contentType: contentType, body: body,
                etag: "\"" + String(hash(body), radix: 16) + "\"")
            if row.sequence <= store.floor {
                shard.install(decider.install(catalog, at: row.sequence))
                documents[row.app] = document
            } else {
                bySequence[row.sequence] = (catalog, document)
            }
        }
        try store.replay(after: store.floor, batch: 1000) { rows in
            for row in rows {
                let body: LogEntry.Body
                switch row.type {
                case .change:
                    let (change, time) = try LogPayload.readChange(row.payload, limits: .none)
                    let decision = try decider.decide(change, app: row.app)
                    body = .change(decision, causeTime: time)
                case .catalog:
                    if let (catalog, document) = bySequence[row.sequence] {
                        documents[row.app] = document
                        body = .catalog(decider.install(catalog, at: row.sequence))
                    } else {
                        withoutDocument.insert(row.app)
                        body = .removal
                    }
                case .removal:
                    documents[row.app] = nil
                    removals[row.app] = row.sequence
                    withoutDocument.remove(row.app)
                    decider.remove(app: row.app)
                    body = .removal
                case .reload:
                    body = .reload(try LogPayload.readReload(row.payload))
                }
                shard.apply(
                    LogEntry(
                        sequence: row.sequence, app: row.app, acceptedAt: row.acceptedAt,
                        body: body), now: 0)
            }
        }
        guard withoutDocument.isEmpty else {
            throw LogPayload.Unreadable(reason: "a catalog entry without document")
        }
        return (documents, removals)
    }
}

extension EpochID {
    /// The name of a recorded epoch.
    init(_ row: EpochRow) {
        self.init(
            ordinal: UInt32(truncatingIfNeeded: row.ordinal),
            nonce: UInt32(truncatingIfNeeded: row.id))
    }
}
