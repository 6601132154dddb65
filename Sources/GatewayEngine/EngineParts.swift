import GatewayCore
import GatewayRecords
import GatewayTLS
import Logging
import NIOCore

/// The services that an engine is built on.
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
    /// The logger of pushes' problems.
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

/// The state from which an engine applies the log, as of one position.
package struct StartState: Sendable {
    /// The shard that every event loop starts with: the versions of all keys, and no stream.
    package let shard: Shard
    /// The compactor that goes on sealing the versions of the shards.
    package let compactor: VersionCompactor
    /// The catalogs in force.
    package let catalogs: CatalogState
    package let hashes: StoreHashes
}

/// The parts of an engine that apply the log, built before the log itself.
package struct EngineParts: Sendable {
    package let catalogs: AppCatalogs
    package let cursors: CursorCodec
    package let loops: ShardLoops
    /// The recent entries of the log.
    package let accepted: AcceptedChanges
    /// Receives the entries of the log.
    package let publisher: LogPublisher

    /// Builds one shard for each event loop.
    package init(
        _ configuration: EngineConfiguration, from state: StartState, registry: Registry,
        cursors: CursorCodec, push: PushLoop?, services: EngineServices
    ) {
        self.cursors = cursors
        catalogs = AppCatalogs(state.catalogs, hashes: state.hashes, limits: configuration.limits)
        let loops = ShardLoops(
            services.eventLoops.enumerated().map { index, loop in
                ShardLoop(
                    loop: loop, index: LoopIndex(index), shard: state.shard,
                    settings: configuration.streams, tlsSettings: services.tlsSettings,
                    signer: services.signer, registry: registry, metrics: services.metrics,
                    cursors: cursors, clock: services.clock, push: push,
                    tracing: services.tracing, logger: services.logger,
                    sampledLog: services.sampledLog)
            })
        self.loops = loops
        accepted = AcceptedChanges(startedAt: state.shard.position)
        publisher = LogPublisher(
            loops: loops, push: push,
            sealer: VersionSealer(state.compactor, loops: loops, push: push),
            tracing: services.tracing)
    }
}
