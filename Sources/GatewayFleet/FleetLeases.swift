import GatewayPostgres
import Synchronization

/// The lease of a node, and the tasks that it does for the whole fleet.
package final class FleetLeases: Sendable {
    private let partitions = Mutex<PostgresPartitions?>(nil)
    private let tasks = Mutex<Set<ClusterLease>>([])
    private let loop: PostgresLoop
    private let retention: PostgresRounds<RetentionRound>

    /// Begins to renew the lease of the node.
    ///
    /// - Parameter position: The position up to which the node knows the log.
    /// - Throws: `PostgresError` when the kernel provides no descriptor.
    init(
        _ settings: FleetSettings, from position: LogPosition, status: FleetStatus
    ) throws(PostgresError) {
        loop = try PostgresLoop(name: "leases")
        retention = PostgresRounds(settings.address, on: loop)
        // A node that does not push takes no partitions of clients.
        let partitions = PostgresPartitions(
            settings.address, settings.durability, from: position, share: .leases, on: loop
        ) { [weak self] report in
            switch report {
            case .ready: status.note(lease: nil)
            case .unready(let reason): status.note(lease: "\(reason)")
            case .acquired(let partition): self?.acquire(partition)
            case .handOver(let partitions): self?.handOver(partitions)
            case .lost(let partitions): self?.forget(partitions)
            // The reader of the log reports it, too, with more to say.
            case .tailLost: break
            case .portion, .loaded, .drained: break
            }
        }
        self.partitions.withLock { $0 = partitions }
    }

    deinit { loop.end() }

    /// Whether the lease of the node surely runs: no other server takes the fleet's writes.
    package var isHeld: Bool { partitions.withLock { $0?.mayPush == true } }

    /// Returns whether the node does a task for the fleet.
    package func holds(_ task: ClusterLease) -> Bool {
        isHeld && tasks.withLock { $0.contains(task) }
    }

    /// Takes tasks from here on: the node follows the log.
    func serve() { partitions.withLock { $0 }?.serve() }

    /// Tells the status of the node's writer.
    func observe(_ status: PostgresWriter.Status) { partitions.withLock { $0 }?.observe(status) }

    /// Tells a position that was read and is durable.
    func advance(to position: LogPosition) { partitions.withLock { $0 }?.advance(to: position) }

    /// Makes and drops slices of the log if that is this node's task; returns `nil` if it is not.
    func retain() async -> Result<RetentionRound.Outcome, PostgresError>? {
        guard holds(.retention) else { return nil }
        return await withCheckedContinuation { continuation in
            retention.run(RetentionRound()) { continuation.resume(returning: $0) }
        }
    }

    private func acquire(_ partition: Partition) {
        guard let lease = partition.lease else { return }
        _ = tasks.withLock { $0.insert(lease) }
    }

    private func handOver(_ partitions: [Partition]) {
        forget(partitions)
        for partition in partitions { self.partitions.withLock { $0 }?.settle(partition) }
    }

    private func forget(_ partitions: [Partition]) {
        tasks.withLock { $0.subtract(partitions.compactMap(\.lease)) }
    }
}
