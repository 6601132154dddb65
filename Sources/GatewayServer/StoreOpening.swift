import CoreMetrics
import GatewayCluster
import GatewayEngine
import GatewayOperations
import GatewayStorage
import Logging

/// Opens the store in a data directory: of a gateway alone, or of a node of a cluster.
struct StoreOpening: Sendable {
    private let configuration: GatewayConfiguration
    private let acceptsLoss: Bool
    private let metrics: GatewayMetrics
    private let logger: Logger

    init(
        _ configuration: GatewayConfiguration, acceptsLoss: Bool, _ metrics: GatewayMetrics,
        _ logger: Logger
    ) {
        self.configuration = configuration
        self.acceptsLoss = acceptsLoss
        self.metrics = metrics
        self.logger = logger
    }

    /// Opens the store of a gateway without a cluster. Throws ``DataDirectoryLoss`` or
    /// `StoreError`.
    func store() throws -> SQLiteStore {
        let checks = StartChecks(configuration: configuration, acceptsLoss: acceptsLoss) { part in
            logger.warning("continuing without a missing part", metadata: ["part": "\(part)"])
        }
        let store: SQLiteStore
        do {
            store = try open(checks.database(), nil)
        } catch StoreError.missing {
            throw checks.loss([.database])
        }
        try checks.requireAlone(store)
        try checks.rings(knownTo: store)
        return store
    }

    private func open(
        _ opening: SQLiteStore.Opening, _ replication: (any StoreReplication)?
    ) throws -> SQLiteStore {
        let wasKilled = SQLiteStore.isLeftOpen(in: configuration.data)
        let storeLog = StoreLog(logger)
        let store = try SQLiteStore(
            directory: configuration.data, opening: opening, replication: replication,
            observer: { [turn = metrics.turns(of: .writer), metrics] figures in
                turn.record(nanoseconds: figures.longestJobNanoseconds)
                metrics.commitSeconds.record(figures.seconds)
                metrics.commitJobs.record(Double(figures.jobs))
                storeLog.succeeded()
            }, onRejection: { storeLog.failed("\($0)") })
        if wasKilled {
            logger.notice("the previous gateway on this directory was killed, not stopped")
        }
        return store
    }

    /// The intervals of the attempts to reach the database of a cluster, and of records that say so.
    private static let (retryInterval, recordInterval) = (Duration.seconds(1), Duration.seconds(10))

    /// Opens the store of a node once its database has answered; `nil` without a cluster. Throws
    /// ``Faults`` that name the option, `StoreError` or `ClusterNode.Fault`.
    func cluster() async throws -> ClusterStart? {
        guard let settings = try configuration.nodeSettings() else { return nil }
        var saidAt: ContinuousClock.Instant?
        var attempt = 0
        while true {
            do {
                return try await ClusterStart(
                    settings, attempt: attempt, logger: logger,
                    open: { try open(.createIfMissing, $0) },
                    discard: { try SQLiteStore.remove(from: configuration.data) })
            } catch let error as PostgresError where error.isPassing {
                if saidAt.map({ $0.duration(to: .now) >= Self.recordInterval }) ?? true {
                    saidAt = .now
                    logger.warning(
                        "the cluster's database is away; the start waits for it",
                        metadata: ["reason": "\(error)"])
                }
                attempt += 1
                try await Task.sleep(for: Self.retryInterval)
            }
        }
    }
}
