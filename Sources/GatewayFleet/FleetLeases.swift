import Foundation
import GatewayPostgres
import Synchronization

/// The lease of a node, the partitions that it pushes to, and the tasks that it does for the whole
/// fleet.
package final class FleetLeases: Sendable {
    private let partitions = Mutex<PostgresPartitions?>(nil)
    private let tasks = Mutex<Set<ClusterLease>>([])
    private let loop: PostgresLoop
    private let retention: PostgresRounds<RetentionRound>
    private let snapshots: PostgresRounds<SnapshotRound>
    package let tokens: FleetProviderTokens
    private let drained = Mutex<(isOver: Bool, waiting: [CheckedContinuation<Void, Never>])>(
        (false, []))

    /// Begins to renew the lease of the node.
    ///
    /// - Parameters:
    ///   - position: The position up to which the node knows the log.
    ///   - pushes: The pushes to the clients of the node's partitions.
    /// - Throws: `PostgresError` when the kernel provides no descriptor.
    init(
        _ settings: FleetSettings, from position: LogPosition, pushes: FleetPushes,
        status: FleetStatus
    ) throws(PostgresError) {
        loop = try PostgresLoop(name: "leases")
        retention = PostgresRounds(
            settings.address, deadline: settings.limits.deadline, on: loop)
        snapshots = PostgresRounds(settings.address, deadline: Self.snapshotDeadline, on: loop)
        tokens = FleetProviderTokens(settings.address, settings.key, on: loop)
        let partitions = PostgresPartitions(
            settings.address, settings.durability, from: position, limits: settings.limits,
            on: loop
        ) { [weak self] report in
            switch report {
            case .ready:
                status.note(lease: nil)
                pushes.receive(.ready)
            case .unready(let reason): status.note(lease: "\(reason)")
            case .acquired(let partition):
                if let lease = partition.lease {
                    self?.acquire(lease)
                } else {
                    pushes.receive(report)
                }
            case .handOver(let partitions):
                self?.handOver(partitions.filter { $0.lease != nil })
                pushes.receive(.handOver(partitions.filter { $0.lease == nil }))
            case .lost(let partitions):
                self?.forget(partitions)
                pushes.receive(.lost(partitions.filter { $0.lease == nil }))
            case .portion: pushes.receive(report)
            case .loaded(let partition):
                if partition.lease == nil { pushes.receive(report) }
            case .drained: self?.endDraining()
            }
        }
        self.partitions.withLock { $0 = partitions }
        pushes.use(partitions)
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

    /// Reports the digest of the node's version windows with the renewals of its lease.
    func report(_ digest: WindowDigest) {
        guard let load = try? JSONEncoder().encode(digest) else { return }
        partitions.withLock { $0 }?.report(load: String(decoding: load, as: UTF8.self))
    }

    /// Makes and drops slices of the log if that is this node's task; returns `nil` if it is not.
    func retain() async -> Result<RetentionRound.Outcome, PostgresError>? {
        guard holds(.retention) else { return nil }
        return await withCheckedContinuation { continuation in
            retention.run(RetentionRound()) { continuation.resume(returning: $0) }
        }
    }

    /// The longest time to an answer, milliseconds: the last step of a snapshot removes older ones.
    private static let snapshotDeadline: Int64 = 30_000

    /// Runs a task for the snapshots of the fleet.
    func run(_ round: SnapshotRound) async throws(PostgresError) -> SnapshotRound.Outcome {
        try await withCheckedContinuation { continuation in
            snapshots.run(round) { continuation.resume(returning: $0) }
        }.get()
    }

    /// Hands the partitions and tasks of the node over; returns once other nodes may take them, or
    /// after ``drainMax``.
    func drain() async {
        partitions.withLock { $0 }?.drain()
        let deadline = Task {
            try await Task.sleep(for: Self.drainMax)
            endDraining()
        }
        defer { deadline.cancel() }
        await withCheckedContinuation { continuation in
            let isOver = drained.withLock { drained in
                if !drained.isOver { drained.waiting.append(continuation) }
                return drained.isOver
            }
            if isOver { continuation.resume() }
        }
    }

    /// The longest time for a hand-over: others take what is left when the lease has run out.
    private static let drainMax = Duration.seconds(8)

    private func endDraining() {
        let waiting = drained.withLock { drained in
            defer { drained = (true, []) }
            return drained.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    private func acquire(_ lease: ClusterLease) {
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
