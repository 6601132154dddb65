import GatewayCore
import GatewayPush
import GatewayRecords
import GatewaySigning
import GatewayStorage
import GatewayTLS
import Logging
import NIOCore
import WidgetModel

/// The parts of a running engine, built from top to bottom: each depends only on those above it.
package struct Engine: Sendable {
    package let store: SQLiteStore
    package let clock: GatewayClock
    /// The registrations in force, in memory.
    package let registry: Registry
    package let catalogs: AppCatalogs
    package let cursors: CursorCodec
    /// `nil` where nothing is pushed.
    package let push: PushLoop?
    package let loops: ShardLoops
    package let writer: LogWriter
    /// Runs work on documents that are too large for the threads shared by all requests.
    package let documents: DocumentWork
    package let changes: ChangeLog
    package let clients: ClientDirectory

    /// Replays the log and opens an epoch, then builds one shard for each event loop.
    ///
    /// - Parameter pushLoop: The loop that decides pushes; `nil` where nothing is pushed.
    /// - Throws: `StoreError`; ``UnreadableRow``.
    package init(
        _ configuration: EngineConfiguration, store: SQLiteStore, signer: NotificationSigner,
        metrics: GatewayMetrics, tlsSettings: TLSServerSettings, eventLoops: [any EventLoop],
        pushLoop: (any EventLoop)?, clock: GatewayClock, tracing: GatewayTracing? = nil,
        logger: Logger
    ) throws {
        self.store = store
        self.clock = clock
        let registry = Registry(streamsMax: configuration.streamsPerClient)
        self.registry = registry
        let replay = try LogReplay(
            of: store, limits: configuration.limits, coreLimits: configuration.coreLimits
        ) { record, app, seenAt in
            registry.put(record, app: app, at: store.head, isRestored: true, seenAt: seenAt)
        }
        store.restoreUsage(replay.usage)
        let hashes = replay.hashes
        catalogs = AppCatalogs(replay.catalogs, hashes: hashes, limits: configuration.limits)
        // Before pushes are restored: it may void their recorded positions.
        let cursors = try CursorCodec(
            openingEpochIn: store, hash: hashes.stored, clock: clock, logger: logger)
        self.cursors = cursors
        let push = try pushLoop.map { loop in
            PushLoop(
                loop: loop,
                scheduler: try PushScheduler(
                    replay.shard, terms: configuration.push, hash: hashes.stored,
                    restoredFrom: store, registry, clock: clock),
                epoch: cursors.epoch, clock: clock, metrics: metrics, tracing: tracing,
                logger: logger)
        }
        self.push = push
        loops = ShardLoops(
            eventLoops.enumerated().map { index, loop in
                ShardLoop(
                    loop: loop, index: LoopIndex(index), shard: replay.shard,
                    settings: configuration.streams, tlsSettings: tlsSettings, signer: signer,
                    registry: registry, metrics: metrics, cursors: cursors, clock: clock,
                    push: push, tracing: tracing, logger: logger)
            })
        documents = DocumentWork(turn: metrics.turns(of: .documents))
        writer = LogWriter(
            store: store, quota: configuration.quota,
            publisher: LogPublisher(
                loops: loops, push: push,
                sealer: VersionSealer(replay.compactor, loops: loops, push: push),
                tracing: tracing),
            tracing: tracing)
        let accepted = AcceptedChanges(startedAt: store.head)
        let log = EmbeddedLog(
            store: store, writer: writer, catalogs: catalogs, registry: registry,
            accepted: accepted, metrics: metrics, clock: clock)
        changes = ChangeLog(
            log: log, catalogs: catalogs, accepted: accepted, documents: documents,
            metrics: metrics, tracing: tracing)
        clients = ClientDirectory(
            log: log, catalogs: catalogs, registry: registry, accepted: accepted, loops: loops,
            push: push, cursors: cursors, documents: documents,
            pushAddresses: configuration.pushAddresses, metrics: metrics, tracing: tracing,
            clock: clock)
        // The log refers to the loops, and the loops to the cursors.
        cursors.onLostTail { [weak log] epoch in
            log?.openEpoch(epoch, cursors: cursors, logger: logger)
        }
    }
}
