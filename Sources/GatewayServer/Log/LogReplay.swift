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
        let rebuilt = try rebuild(configuration, store)
        let (hash, registry, shard) = (rebuilt.hash, rebuilt.registry, rebuilt.shard)
        // Before pushes are restored: it may have voided what is known of them.
        let desk = try openEpoch(store, hash, logger)
        store.restoreUsage(rebuilt.usage)
        var push: PushLoop?
        if let pushLoop {
            let pushDesk = PushDesk(shard, terms: configuration.push.terms, hash: hash)
            push = PushLoop(
                loop: pushLoop, desk: try self.pushDesk(pushDesk, store, registry, clock),
                epoch: desk.epoch, clock: clock, metrics: metrics, tracing: tracing, logger: logger)
        }
        let loops = eventLoops.map { loop in
            ShardLoop(
                loop: loop, shard: shard, settings: configuration.streams,
                tlsSettings: tlsSettings, press: press, registry: registry, metrics: metrics,
                cursors: desk, push: push, tracing: tracing, logger: logger)
        }
        let sequencer = Sequencer(
            store: store, registry: registry, desk: desk, metrics: metrics,
            limits: configuration.limits, quota: configuration.quota, hash: hash,
            state: rebuilt.state,
            loops: loops, push: push, tracing: tracing)
        // The sequencer has the desk.
        desk.onLostTail { [weak sequencer] epoch in sequencer?.openEpoch(epoch, logger) }
        return Built(sequencer: sequencer, loops: ShardLoops(loops), desk: desk, push: push)
    }

    /// The state rebuilt from the registrations and the log's tail.
    struct RebuiltState {
        let hash: SipHash
        let registry: Registry
        let shard: Shard
        let state: Sequencer.State
        /// The registrations and log bytes of every app on disk.
        let usage: UsageTable
    }

    /// Reads the registrations and replays the log's tail; changes nothing in the store.
    ///
    /// - Throws: As ``build(_:_:_:_:_:_:_:_:_:tracing:)``.
    static func rebuild(
        _ configuration: GatewayConfiguration, _ store: SQLiteStore
    ) throws -> RebuiltState {
        let hash = SipHash(secret: Array(store.secret))
        let registry = Registry(streamsMax: configuration.streamsPerClient)
        var usage = UsageTable()
        try restoreRegistrations(store, registry, &usage)
        var decider = Decider(hash: hash, limits: configuration.limits)
        var shard = Shard(floor: store.floor, limits: configuration.coreLimits)
        let (documents, removals) = try replay(store, hash, &decider, &shard, &usage)
        return RebuiltState(
            hash: hash, registry: registry, shard: shard,
            state: .init(decider: decider, documents: documents, removals: removals),
            usage: usage)
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

    /// Opens the epoch of this start. It voids all before it where the data directory was copied or
    /// its log lost its end.
    private static func openEpoch(
        _ store: SQLiteStore, _ hash: SipHash, _ logger: Logger
    ) throws -> CursorDesk {
        let loss = try store.suspectedLoss()
        switch loss {
        case nil: break
        case .copied:
            logger.error("the data directory is a copy: all cursors so far are void")
        case .shortened(let marked, let head):
            logger.error(
                "the log has lost its end: all cursors so far are void",
                metadata: ["head": "\(head)", "was": "\(marked)"])
        }
        let now = Int64(Date().timeIntervalSince1970)
        let beyond = loss == nil ? 0 : EpochLedger.ordinalBeyondLoss(after: 0, now: now)
        let nonce = try secureRandom(count: 8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let opened = try store.openEpoch(
            id: nonce, atLeast: Int64(beyond), now: now * 1000, voidOlder: loss != nil)
        try store.renewMark()
        let epochs = try store.epochs().map {
            EpochLedger.Epoch(
                id: EpochID($0), openedAt: $0.openedAtSequence, isVoid: $0.isVoid)
        }
        return CursorDesk(
            seal: CursorSeal(hash), ledger: EpochLedger(epochs), epoch: EpochID(opened),
            head: { store.head })
    }

    private static func restoreRegistrations(
        _ store: SQLiteStore, _ registry: Registry, _ usage: inout UsageTable
    ) throws {
        try store.registrations { rows in
            for row in rows {
                usage.add(row)
                let stored = try StoredRegistration(row.payload, limits: .none)
                registry.put(
                    stored.record(of: row.key.client), app: row.key.app, at: store.head,
                    isRestored: true)
            }
        }
    }

    /// Replays the tail and counts its bytes; returns the catalogs in force at its end, as they were
    /// put, and where apps
    /// were removed.
    private static func replay(
        _ store: SQLiteStore, _ hash: SipHash, _ decider: inout Decider, _ shard: inout Shard,
        _ usage: inout UsageTable
    ) throws -> ([String: CatalogDocument], removals: [String: UInt64]) {
        var documents: [String: CatalogDocument] = [:]
        var removals: [String: UInt64] = [:]
        // Catalogs go when their app does, and before the rows that announced them.
        var withoutDocument: Set<String> = []
        var bySequence: [UInt64: (Catalog, CatalogDocument)] = [:]
        for row in try store.catalogs() {
            usage.add(row)
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
                usage.add(row)
                let body: LogEntry.Body
                switch row.type {
                case .change:
                    let (change, time) = try LogPayload.readChange(row.payload, limits: .none)
                    body = decider.replay(change, app: row.app, causeTime: time)
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
