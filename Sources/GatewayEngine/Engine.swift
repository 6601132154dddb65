import GatewayCore
import GatewayPush
import GatewayRecords
import GatewayStorage
import Logging
import NIOCore

/// The parts of a running engine, built from top to bottom: each depends only on those above it.
package struct Engine: Sendable {
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
    package let writer: LogWriter
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
    ///   - leader: `nil` if no other gateway shares the log. With others the epoch is opened by the
    ///     one that leads.
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
        let parts = EngineParts(
            configuration,
            from: StartState(
                shard: replay.shard, compactor: replay.compactor, catalogs: replay.catalogs,
                hashes: replay.hashes),
            registry: registry,
            cursors: CursorCodec(seal: CursorSeal(replay.hashes.stored), history: epochs),
            push: push, services: services)
        let writer = LogWriter(
            store: store, publisher: parts.publisher, tracing: services.tracing)
        let applier = LogApplier(
            registry: registry, catalogs: parts.catalogs, accepted: parts.accepted,
            metrics: services.metrics, publisher: parts.publisher, epochs: epochs)
        let log = EngineLog(
            store: store, writer: writer,
            jobs: LogJobs(
                catalogs: parts.catalogs, registry: registry, quota: configuration.quota,
                applier: applier, clock: clock, epochsMax: store.configuration.epochsMax),
            leader: leader)
        (self.store, self.writer, self.log) = (store, writer, log)
        self.leader = leader
        self.clock = clock
        self.registry = registry
        catalogs = parts.catalogs
        cursors = parts.cursors
        self.push = push
        loops = parts.loops
        documents = DocumentWork(turn: services.metrics.turns(of: .documents))
        changes = ChangeLog(
            log: log, catalogs: catalogs, accepted: parts.accepted, documents: documents,
            metrics: services.metrics, tracing: services.tracing)
        clients = ClientDirectory(
            log: log, catalogs: catalogs, registry: registry, accepted: parts.accepted,
            loops: loops, push: push, cursors: cursors, documents: documents,
            pushAddresses: configuration.pushAddresses, metrics: services.metrics,
            tracing: services.tracing, clock: clock, leader: leader)
        if leader == nil {
            // The log refers to the loops, and the loops to the history.
            epochs.onLostTail { [weak log] in log?.openEpoch($0, logger: logger) }
        }
    }
}
