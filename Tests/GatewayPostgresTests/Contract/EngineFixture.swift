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
    let log: any EngineLog
    let changes: ChangeLog
    let clients: ClientDirectory
    let catalogs: AppCatalogs
    let registry: Registry
    let loops: ShardLoops
    /// Ends everything, and removes what is on disk.
    let stop: @Sendable () async throws -> Void

    static func start(
        _ kind: StoreKind, limits: Limits = Limits()
    ) async throws -> EngineFixture {
        switch kind {
        case .memory:
            let store = try SQLiteStore(inMemory: StoreConfiguration())
            return try embedded(store, limits: limits) {}
        case .file:
            let directory = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString)"
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: false)
            let store = try SQLiteStore(
                directory: directory, configuration: StoreConfiguration())
            return try embedded(store, limits: limits) {
                try? FileManager.default.removeItem(atPath: directory)
            }
        case .fleet:
            return try await node(1, of: try ClusterFixture(), limits: limits)
        }
    }

    private static let logger = Logger(label: "contract") { _ in SwiftLogNoOpLogHandler() }

    private static func signer() throws -> NotificationSigner {
        NotificationSigner(
            issuer: "https://gateway.test", lifetime: 900,
            signer: JWSSigner.reloads(try SigningKey()), nonce: 7)
    }

    private static func embedded(
        _ store: SQLiteStore, limits: Limits, remove: @escaping @Sendable () -> Void
    ) throws -> EngineFixture {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let engine = try Engine(
            EngineConfiguration(limits: limits, streamsPerClient: 4), store: store,
            signer: signer(), metrics: GatewayMetrics(), tlsSettings: TLSServerSettings(),
            eventLoops: Array(group.makeIterator()), pushLoop: nil, clock: .system,
            logger: logger)
        return EngineFixture(
            log: engine.changes.log, changes: engine.changes, clients: engine.clients,
            catalogs: engine.catalogs, registry: engine.registry, loops: engine.loops
        ) {
            try await store.close()
            try await end(engine.loops, group)
            remove()
        }
    }

    private static func end(
        _ loops: ShardLoops, _ group: MultiThreadedEventLoopGroup
    ) async throws {
        for shard in loops.all { try await shard.loop.submit { shard.stop() }.get() }
        try await group.shutdownGracefully()
    }

    /// Starts a node of a fleet, and waits until it follows the log.
    static func node(
        _ number: Int, of cluster: ClusterFixture, limits: Limits = Limits()
    ) async throws -> EngineFixture {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let (clock, metrics) = (GatewayClock.system, GatewayMetrics())
        let hashes = try FleetHashes(secret: Array(repeating: 7, count: 32))
        let key = SecretBytes(count: FleetKey.byteCount) {
            $0.initializeMemory(as: UInt8.self, repeating: 9)
            return true
        }
        let seal = RegistrationSeal(FleetKey(try #require(key)))
        let registry = Registry(streamsMax: 4)
        let catalogs = AppCatalogs(
            CatalogState(decider: Decider(hash: hashes.store.keys, limits: limits)),
            hashes: hashes.store, limits: limits)
        let accepted = AcceptedChanges(startedAt: 0)
        let (signer, tls) = (try signer(), TLSServerSettings())
        let epoch = EpochID(ordinal: 1, nonce: 1)
        let cursors = CursorCodec(
            seal: CursorSeal(hashes.store.stored),
            ledger: EpochLedger([.init(id: epoch, openedAt: 0, isVoid: false)]), epoch: epoch,
            clock: clock, head: { .max })
        let loops = ShardLoops(
            group.makeIterator().enumerated().map { index, loop in
                ShardLoop(
                    loop: loop, index: LoopIndex(index), shard: Shard(floor: 0),
                    settings: StreamSettings(), tlsSettings: tls, signer: signer,
                    registry: registry, metrics: metrics, cursors: cursors, clock: clock,
                    push: nil, tracing: nil, logger: logger)
            })
        let follower = FleetFollower(
            LogApplication(hashes: hashes.store, limits: limits),
            catalogs: catalogs, registry: registry, accepted: accepted,
            publisher: LogPublisher(
                loops: loops, push: nil,
                sealer: VersionSealer(VersionCompactor(floor: 0), loops: loops, push: nil),
                tracing: nil),
            seal: seal, clock: clock
        ) { fatalError("\($0)") }
        let connection = Mutex<PostgresLog?>(nil)
        let isFollowing = TestHTTPMonitor(false)
        let log = try PostgresLog(
            try cluster.address(user: "node\(number)"), .primary
        ) { event in
            switch event {
            case .batch(let batch):
                follower.receive(batch) { reading, complete in
                    connection.withLock { $0 }?.read(reading, complete: complete)
                }
            case .following: isFollowing.update { $0 = true }
            case .head, .writer, .notFollowing, .tailLost: break
            }
        }
        connection.withLock { $0 = log }
        guard isFollowing.wait(seconds: 20, { $0 ? true : nil }) == true else {
            throw TestFailure("the node does not follow the log")
        }
        let fleet = FleetLog(
            log, follower: follower, hashes: hashes, seal: seal, catalogs: catalogs,
            registry: registry, loops: loops, clock: clock)
        let documents = DocumentWork(turn: metrics.turns(of: .documents))
        return EngineFixture(
            log: fleet,
            changes: ChangeLog(
                log: fleet, catalogs: catalogs, accepted: accepted, documents: documents,
                metrics: metrics, tracing: nil),
            clients: ClientDirectory(
                log: fleet, catalogs: catalogs, registry: registry, accepted: accepted,
                loops: loops, push: nil, cursors: cursors, documents: documents,
                pushAddresses: EngineConfiguration(streamsPerClient: 4).pushAddresses,
                metrics: metrics, tracing: nil, clock: clock),
            catalogs: catalogs, registry: registry, loops: loops
        ) {
            connection.withLock { $0 = nil }
            try await end(loops, group)
            _ = cluster
        }
    }
}
