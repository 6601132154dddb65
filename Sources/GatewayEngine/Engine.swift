import GatewayCore
import GatewayOperations
import GatewayStorage
import GatewayTLS
import Logging
import NIOCore

/// The parts of a running engine, built from top to bottom: each depends only on those above it. A
/// reference, because each connection holds one.
package final class Engine: Sendable {
    package let clock: GatewayClock
    /// The registrations in force, in memory.
    package let registry: Registry
    package let catalogs: AppCatalogs
    package let cursors: CursorCodec
    /// `nil` where nothing is pushed.
    package let push: PushLoop?
    package let loops: ShardLoops
    /// The log and the registrations, for readers.
    package let store: SQLiteStore
    package let log: EngineLog
    /// Runs work on documents that are too large for the threads shared by all requests.
    package let documents: DocumentWork
    package let changes: ChangeLog
    package let clients: ClientDirectory
    /// `nil` if no other gateway shares the log.
    package let leader: (any LogLeader)?

    /// Replays the log and opens an epoch, then builds one shard for each event loop.
    ///
    /// - Parameters:
    ///   - pushLoop: The loop that decides pushes; `nil` where nothing is pushed.
    ///   - leader: The gateway that leads and opens the epoch; `nil` if none shares the log.
    /// - Throws: `StoreError`; ``UnreadableRow``.
    package init(
        _ configuration: EngineConfiguration, store: SQLiteStore, pushLoop: (any EventLoop)?,
        services: EngineServices, leader: (any LogLeader)? = nil
    ) throws {
        let (clock, logger) = (services.clock, services.logger)
        let registry = Registry(
            streamsMax: configuration.streamsPerClient, notesContacts: leader != nil)
        let replay = try LogReplay(
            of: store, limits: configuration.limits, coreLimits: configuration.coreLimits
        ) { record, app, seenAt in
            registry.put(record, app: app, at: store.head, isRestored: true, seenAt: seenAt)
        }
        store.restoreUsage(replay.usage)
        // Before pushes are restored: it may void their recorded positions.
        let epochs =
            if let leader {
                try EpochHistory(following: store, clock: clock, leader: leader)
            } else {
                try EpochHistory(openingEpochIn: store, clock: clock, logger: logger)
            }
        let push = try pushLoop.map { loop in
            PushLoop(
                loop: loop,
                scheduler: leader == nil
                    ? try PushScheduler(
                        replay.shard, terms: configuration.push, hash: replay.hashes.stored,
                        starts: replay.starts, restoredFrom: store, registry, clock: clock)
                    : PushScheduler(
                        replay.shard, terms: configuration.push, hash: replay.hashes.stored,
                        starts: replay.starts),
                rests: leader != nil, registry: registry, epoch: epochs.epoch, clock: clock,
                metrics: services.metrics,
                tracing: services.tracing, logger: logger, pushLogger: services.pushLogger)
        }
        let cursors = CursorCodec(seal: CursorSeal(replay.hashes.stored), history: epochs)
        let catalogs = AppCatalogs(
            replay.catalogs, hashes: replay.hashes, limits: configuration.limits)
        let loops = ShardLoops(
            services.eventLoops.enumerated().map { index, loop in
                ShardLoop(
                    loop: loop, index: LoopIndex(index), shard: replay.shard,
                    settings: configuration.streams, tlsSettings: services.tlsSettings,
                    signer: services.signer, registry: registry, metrics: services.metrics,
                    cursors: cursors, clock: clock, push: push, tracing: services.tracing,
                    logger: logger, sampledLog: services.sampledLog)
            })
        let accepted = AcceptedChanges(startedAt: replay.shard.position)
        let applier = LogApplier(
            registry: registry, catalogs: catalogs, accepted: accepted,
            metrics: services.metrics,
            publisher: LogPublisher(
                loops: loops, push: push,
                sealer: VersionSealer(replay.compactor, loops: loops, push: push),
                tracing: services.tracing),
            epochs: epochs)
        let log = EngineLog(
            store: store, catalogs: catalogs, registry: registry, quota: configuration.quota,
            applier: applier, clock: clock, tracing: services.tracing, leader: leader)
        (self.store, self.log, self.loops) = (store, log, loops)
        (self.catalogs, self.cursors) = (catalogs, cursors)
        self.leader = leader
        self.clock = clock
        self.registry = registry
        self.push = push
        let documents = DocumentWork(turn: services.metrics.turns(of: .documents))
        self.documents = documents
        changes = ChangeLog(
            log: log, catalogs: catalogs, accepted: accepted, documents: documents,
            metrics: services.metrics, tracing: services.tracing)
        clients = ClientDirectory(
            log: log, catalogs: catalogs, registry: registry, accepted: accepted,
            loops: loops, push: push, cursors: cursors, documents: documents,
            pushAddresses: configuration.pushAddresses, metrics: services.metrics,
            tracing: services.tracing, clock: clock, leader: leader)
        if leader == nil {
            // The log refers to the loops, and the loops to the history.
            epochs.onLostTail { [weak log] in log?.openEpoch($0, logger: logger) }
        }
    }
}

package struct EngineServices: Sendable {
    package let signer: NotificationSigner
    package let metrics: GatewayMetrics
    package let tlsSettings: TLSServerSettings
    /// One for each shard.
    package let eventLoops: [any EventLoop]
    package let clock: GatewayClock
    /// `nil` where nothing is traced.
    package let tracing: GatewayTracing?
    package let logger: Logger
    package let pushLogger: Logger
    /// Where the ends of streams are logged that clients cause; `nil` for nowhere.
    package let sampledLog: SampledLog?

    package init(
        signer: NotificationSigner, metrics: GatewayMetrics, tlsSettings: TLSServerSettings,
        eventLoops: [any EventLoop], clock: GatewayClock, tracing: GatewayTracing? = nil,
        logger: Logger, pushLogger: Logger? = nil, sampledLog: SampledLog? = nil
    ) {
        self.signer = signer
        self.metrics = metrics
        self.tlsSettings = tlsSettings
        self.eventLoops = eventLoops
        self.clock = clock
        self.tracing = tracing
        self.logger = logger
        self.pushLogger = pushLogger ?? logger
        self.sampledLog = sampledLog
    }
}
