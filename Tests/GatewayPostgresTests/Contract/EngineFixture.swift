import ClusterTestSupport
import Foundation
import GatewayCore
import GatewayDelivery
import GatewaySettings
import GatewaySigning
import GatewayStorage
import GatewayTLS
import GatewayTestSupport
import Logging
import NIOCore
import NIOPosix
import Synchronization
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayFleet
@testable import GatewayPostgres
@testable import GatewayRecords

/// A store of the log and the registrations.
enum StoreKind: String, CaseIterable, CustomTestStringConvertible {
    case memory, file, fleet

    var testDescription: String { rawValue }
}

/// The engine of a gateway on one of the stores, without ports and streams.
struct EngineFixture: Sendable {
    let engine: Engine
    let log: any EngineLog
    let changes: ChangeLog
    let clients: ClientDirectory
    let catalogs: AppCatalogs
    let registry: Registry
    let loops: ShardLoops
    /// Ends everything, and removes what is on disk.
    let stop: @Sendable () async throws -> Void

    /// Starts a gateway on a new store.
    ///
    /// - Parameter slice: The sequences in a slice of a fleet's log, of which it has three.
    static func start(
        _ kind: StoreKind, limits: Limits = Limits(), slice: Int64 = 1_000_000
    ) async throws -> EngineFixture {
        switch kind {
        case .memory:
            let store = try SQLiteStore(inMemory: StoreConfiguration())
            return try embedded(store, limits: limits) {}
        case .file:
            let directory = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString)"
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: false)
            return try file(in: directory, limits: limits) {
                try? FileManager.default.removeItem(atPath: directory)
            }
        case .fleet:
            return try await node(1, of: try ClusterFixture(slice: slice), limits: limits)
        }
    }

    /// Starts an engine on the store in a directory.
    ///
    /// - Parameter remove: Called at the end.
    static func file(
        in directory: String, limits: Limits = Limits(),
        remove: @escaping @Sendable () -> Void = {}
    ) throws -> EngineFixture {
        let store = try SQLiteStore(directory: directory, configuration: StoreConfiguration())
        return try embedded(store, limits: limits, remove: remove)
    }

    /// A tenth as fast as real time, so that what a node waits a second for may take ten.
    private static let clock = GatewayClock(
        now: { GatewayClock.system.now() / 10 },
        wallMilliseconds: GatewayClock.system.wallMilliseconds,
        sleep: { await GatewayClock.system.sleep($0 * 10) })

    static let logger = Logger(label: "contract") { _ in SwiftLogNoOpLogHandler() }

    private static func signer() throws -> NotificationSigner {
        NotificationSigner(
            issuer: "https://gateway.test", lifetime: 900,
            signer: JWSSigner.reloads(try SigningKey()), nonce: 7)
    }

    private static func services(_ group: MultiThreadedEventLoopGroup) throws -> EngineServices {
        EngineServices(
            signer: try signer(), metrics: GatewayMetrics(), tlsSettings: TLSServerSettings(),
            eventLoops: Array(group.makeIterator()), clock: clock, logger: logger)
    }

    private static func embedded(
        _ store: SQLiteStore, limits: Limits, remove: @escaping @Sendable () -> Void
    ) throws -> EngineFixture {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let engine = try Engine(
            EngineConfiguration(limits: limits, streamsPerClient: 4), store: store, pushLoop: nil,
            services: services(group))
        return EngineFixture(engine) {
            try await store.close()
            try await end(engine.loops, group)
            remove()
        }
    }

    init(_ engine: Engine, stop: @escaping @Sendable () async throws -> Void) {
        self.engine = engine
        log = engine.changes.log
        (changes, clients, catalogs) = (engine.changes, engine.clients, engine.catalogs)
        (registry, loops) = (engine.registry, engine.loops)
        self.stop = stop
    }

    private static func end(
        _ loops: ShardLoops, _ group: MultiThreadedEventLoopGroup
    ) async throws {
        for shard in loops.all { try await shard.loop.submit { shard.stop() }.get() }
        try await group.shutdownGracefully()
    }

    /// The key of every fleet.
    static let fleetKey = Array(repeating: UInt8(9), count: FleetKey.byteCount)

    /// Opens the keys of a fleet as one of its nodes.
    ///
    /// - Parameter deadline: The longest time of a write or a reading, in milliseconds.
    static func keys(
        of number: Int, of cluster: ClusterFixture, deadline: Int64 = Int64(Patience.milliseconds)
    ) async throws -> FleetKeys {
        var limits = BatchLimits()
        limits.deadline = deadline
        let settings = FleetSettings(
            address: try cluster.address(user: "node\(number)"), durability: .primary,
            key: FleetKey(SecretBytes(copying: fleetKey)), limits: limits)
        return try await FleetKeys.open(
            settings, timing: KeyRing.Timing(signatureLifetime: 900), logger: logger)
    }

    /// Starts a node of a fleet, and waits until it follows the log.
    static func node(
        _ number: Int, of cluster: ClusterFixture, limits: Limits = Limits(),
        deadline: Int64 = Int64(Patience.milliseconds)
    ) async throws -> EngineFixture {
        let (node, stop) = try await fleetNode(
            number, of: cluster, limits: limits, deadline: deadline)
        return EngineFixture(node.engine, stop: stop)
    }

    /// Starts a node of a fleet, and waits until it follows the log.
    static func fleetNode(
        _ number: Int, of cluster: ClusterFixture, limits: Limits = Limits(),
        deadline: Int64 = Int64(Patience.milliseconds)
    ) async throws -> (node: FleetNode, stop: @Sendable () async throws -> Void) {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let keys = try await keys(of: number, of: cluster, deadline: deadline)
        let node = try FleetNode(
            keys, EngineConfiguration(limits: limits, streamsPerClient: 4),
            pushLoop: group.next(), services: services(group)
        ) { fatalError($0) }
        try await node.ready()
        return (
            node,
            {
                node.close()
                try await end(node.engine.loops, group)
                _ = cluster
            }
        )
    }
}
