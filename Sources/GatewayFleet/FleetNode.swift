import GatewayCore
import GatewayEngine
import GatewayPostgres
import GatewayPush
import GatewayRecords
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization
import WidgetModel

/// A node of a fleet: the engine on a log that other nodes share.
package final class FleetNode: Service {
    package let engine: Engine
    /// Whether the node follows and writes the log.
    package let status: FleetStatus
    /// The lease of the node, and its tasks for the fleet.
    package let leases: FleetLeases
    package let pushes: FleetPushes
    /// The snapshots that the node writes for the fleet.
    package let snapshots: FleetSnapshots
    let follower: FleetFollower
    private let logger: Logger
    private let relay: Relay
    private let history: BatchHistory
    private let records: FleetRecords

    /// The time for which a client is held after its last contact, in milliseconds.
    private static let holdingTime: Int64 = 600_000
    /// The interval between two rounds of the log's maintenance: a burst of changes must not use up
    /// the slices that are ready.
    private static let interval = Duration.seconds(5)
    /// The number of rounds after which clients are forgotten.
    private static let roundsPerForgetting = 6

    /// Begins to read the log.
    ///
    /// - Parameters:
    ///   - pushLoop: The loop that decides pushes.
    ///   - onFailure: Called with the reason when this process cannot go on, on the thread of the
    ///     log; it must end.
    /// - Throws: `PostgresError` when the kernel provides no descriptor;
    ///   ``LogApplication/Unreadable``.
    package init(
        _ keys: FleetKeys, _ configuration: EngineConfiguration, pushLoop: any EventLoop,
        services: EngineServices,
        onFailure: @escaping @Sendable (String) -> Void
    ) throws {
        let hashes = keys.hashes
        guard let start = keys.removeStart() else {
            preconditionFailure("a node of these keys was made before")
        }
        let seal = RegistrationSeal(keys.settings.key)
        let history = BatchHistory(start.log, tags: start.tags)
        let state = start.state(configuration, hashes.store)
        let onUnreadableRow: FleetFollower.UnreadableRowReport = { [logger = services.logger] in
            logger.error(
                "a registration cannot be read; the client has to register again",
                metadata: ["app": "\($0.app)", "client": "\($0.client)", "reason": "\($1)"])
        }
        let pushes = FleetPushes(hashes, seal, onUnreadableRow: onUnreadableRow)
        let registry = Registry(streamsMax: configuration.streamsPerClient)
        let push = PushLoop(
            loop: pushLoop,
            scheduler: PushScheduler(
                state.shard, terms: configuration.push, hash: hashes.store.stored, isShared: true),
            partitions: PushPartitions { Int32(hashes.key(of: $0).part) }, registry: registry,
            epoch: history.epoch, clock: services.clock, metrics: services.metrics,
            tracing: services.tracing, logger: services.logger,
            pushLogger: services.pushLogger)
        pushes.use(push)
        let parts = EngineParts(
            configuration, from: state, registry: registry,
            cursors: CursorCodec(seal: CursorSeal(hashes.store.stored), history: history),
            push: push, services: services)
        let follower = FleetFollower(
            LogApplication(
                hashes: hashes.store, decider: state.catalogs.decider,
                position: UInt64(start.position.last)), from: start.position,
            catalogs: parts.catalogs, registry: parts.registry, accepted: parts.accepted,
            publisher: parts.publisher, seal: seal, hashes: hashes, pushes: pushes,
            history: history, clock: services.clock,
            onUnreadableRow: onUnreadableRow
        ) { onFailure("\($0)") }
        let (status, relay) = (FleetStatus(services.logger), Relay())
        let leases = try FleetLeases(
            keys.settings, from: start.position, pushes: pushes, status: status)
        let lostTail = LostTail(
            keys.settings.address, logger: services.logger, onFailure: onFailure)
        history.onLostTail { [unowned history] in lostTail.respond(to: $0, history) }
        let snapshots = FleetSnapshots(
            leases, follower, floor: start.floor, clock: services.clock,
            logger: services.logger)
        let beginning = Beginning(start, services.logger)
        let connection = try PostgresLog(
            keys.settings.address, keys.settings.durability, after: start.position,
            limits: keys.settings.limits
        ) { event in
            switch event {
            case .batch(let batch):
                beginning.receive(batch)
                leases.advance(to: batch.position)
                follower.receive(batch) { reading, complete in
                    relay.connection.withLock { $0 }?.read(reading, complete: complete)
                }
            case .head(let position, let askedAt):
                relay.log.withLock { $0 }?.observe(position, askedAt: askedAt)
            case .writer(let writer):
                leases.observe(writer)
                guard case .ready(let identity) = writer else {
                    if case .unready(let reason) = writer { status.note(writer: "\(reason)") }
                    if case .unready(.tailLost) = writer {
                        lostTail.respond(
                            history,
                            "the servers have another log, or not the newest batch of this node")
                    }
                    break
                }
                // Before the reader reports a batch: it waits for the writer.
                history.note(logID: identity.logID)
                status.note(writer: nil)
            case .following:
                status.note(reader: nil)
                beginning.end()
                snapshots.endReservation()
                leases.serve()
            case .notFollowing(let reason):
                status.note(reader: "\(reason)")
                if reason == .tailLost {
                    lostTail.respond(
                        history, "the servers do not have the newest batch that this node has read")
                }
            }
        }
        let log = FleetLog(
            connection, follower: follower, hashes: hashes, seal: seal, catalogs: parts.catalogs,
            registry: parts.registry, loops: parts.loops, clock: services.clock,
            holdsLease: { leases.isHeld }, onUnreadableRow: onUnreadableRow)
        relay.connection.withLock { $0 = connection }
        relay.log.withLock { $0 = log }
        let records = try FleetRecords(
            log, keys.settings.address, patience: keys.settings.limits.deadline, history: history,
            hashes: hashes, seal: seal,
            objection: { status.objection ?? keys.unreadiness }, onUnreadableRow: onUnreadableRow)
        history.use(records)
        engine = Engine(parts, log: log, records: records)
        self.status = status
        self.relay = relay
        self.leases = leases
        self.snapshots = snapshots
        self.follower = follower
        self.pushes = pushes
        logger = services.logger
        self.history = history
        self.records = records
    }

    /// Reads and writes nothing more.
    package func close() {
        relay.connection.withLock { $0 = nil }
        relay.log.withLock { $0 = nil }
        history.use(nil)
        pushes.use(nil as PushLoop?)
        pushes.use(nil as PostgresPartitions?)
        records.close()
    }

    /// The parts that the log reports to and that use it.
    private final class Relay: Sendable {
        let connection = Mutex<PostgresLog?>(nil)
        let log = Mutex<FleetLog?>(nil)
    }

    /// The newest digest of the node's version windows, for comparison with those of other nodes;
    /// `nil` until the log goes on in another minute.
    package var windowDigest: WindowDigest? { follower.windowDigest }

    /// Returns once the node has applied the log as it was when the node began to follow it.
    package func ready() async throws {
        await status.ready()
        let head = engine.records.head
        for loop in engine.loops.all { try await loop.reached(head) }
    }

    /// Maintains the node and, while it holds the lease of that task, the log.
    package func run() async throws {
        let snapshots = Task { try await self.snapshots.run() }
        try? await cancelWhenGracefulShutdown {
            for round in 1... {
                try await Task.sleep(for: Self.interval)
                if round.isMultiple(of: Self.roundsPerForgetting) { self.forgetClients() }
                if let digest = self.windowDigest { self.leases.report(digest) }
                await self.maintainLog()
            }
        }
        // Not waited for: a snapshot that is being written ends once its task is handed over.
        snapshots.cancel()
        // Others go on before this node's lease has run out.
        await leases.drain()
    }

    /// Forgets the clients that are not connected any more.
    private func forgetClients() {
        engine.registry.forget(unseenSince: engine.clock.wallMilliseconds() - Self.holdingTime)
    }

    /// Makes and drops slices of the log if that is this node's task.
    private func maintainLog() async {
        guard let result = await leases.retain() else { return }
        switch result {
        case .success(let outcome) where outcome.missingSlices > 0:
            logger.error(
                "slices of the fleet's log are missing; it takes no changes once they are needed",
                metadata: ["missing": "\(outcome.missingSlices)"])
        case .success(let outcome) where !outcome.removals.isEmpty:
            logger.notice(
                "old slices of the fleet's log were removed",
                metadata: [
                    "floor": "\(outcome.floor)",
                    "tables": "\(outcome.removals.joined(separator: " "))",
                ])
        case .success: break
        case .failure(let error):
            logger.warning(
                "retention of the fleet's log failed; trying again",
                metadata: ["reason": "\(error)"])
        }
    }
}

/// Counts what a node reads until it follows the log, for one line of the log.
private final class Beginning: Sendable {
    /// The state that the node began with, without its keys; `nil` once it was reported.
    private let state: Mutex<(report: @Sendable (_ batches: Int) -> Void, batches: Int)?>

    init(_ start: NodeStart, _ logger: Logger) {
        let report = start.report
        state = Mutex(({ report.log(batches: $0, to: logger) }, 0))
    }

    func receive(_ batch: LogBatch) { state.withLock { $0?.batches += 1 } }

    func end() {
        let ended = state.withLock { state in
            defer { state = nil }
            return state
        }
        if let ended { ended.report(ended.batches) }
    }
}
