import GatewayCore
import GatewayPostgres
import Logging
import Synchronization

/// Writes the snapshots of a fleet while this node holds the lease of that task, and reserves the
/// log for this node while it starts.
package final class FleetSnapshots: Sendable {
    private struct State {
        /// The last reason for not writing that was logged.
        var logged = ""
        /// The time before which nothing is tried, after a failure.
        var retryAt = Int64.min
        var hasEndedReservation = false
    }

    /// The interval at which the node looks whether a snapshot is due.
    private static let interval = Duration.seconds(5)
    /// The pause after a failure, in milliseconds: what is written again may be large.
    private static let pause: Int64 = 60_000

    private let leases: FleetLeases
    private let follower: FleetFollower
    /// The sequence up to which this node knows nothing.
    private let floor: UInt64
    private let schedule: SnapshotSchedule
    private let clock: GatewayClock
    private let logger: Logger
    private let state = Mutex(State())

    init(
        _ leases: FleetLeases, _ follower: FleetFollower, floor: UInt64, clock: GatewayClock,
        logger: Logger, schedule: SnapshotSchedule = SnapshotSchedule()
    ) {
        self.leases = leases
        self.follower = follower
        self.floor = floor
        self.schedule = schedule
        self.clock = clock
        self.logger = logger
    }

    /// Writes snapshots until the task is cancelled.
    func run() async throws {
        while true {
            try await Task.sleep(for: Self.interval)
            await writeIfDue()
        }
    }

    /// Writes a snapshot if that is this node's task and one is due.
    ///
    /// - Returns: The outcome; `nil` if none was written.
    @discardableResult
    package func writeIfDue() async -> SnapshotWriter.Outcome? {
        guard leases.holds(.snapshot), state.withLock({ $0.retryAt }) <= clock.now() else {
            return nil
        }
        do throws(PostgresError) {
            guard case .heads(let heads) = try await leases.run(.readHeads) else { return nil }
            switch schedule.decision(
                at: Int64(clamping: follower.position), floor: Int64(clamping: floor),
                heads: heads)
            {
            case .write: return try await write(await copy())
            case .notDue: log(once: "")
            case .knowsLess:
                log(
                    once: "the newest snapshot goes on from further back in the log than this node"
                        + " does, which began without one")
            }
        } catch {
            state.withLock { $0.retryAt = clock.now() + Self.pause }
            log(once: "\(error)")
        }
        return nil
    }

    private func write(_ snapshot: NodeSnapshot) async throws(PostgresError)
        -> SnapshotWriter.Outcome?
    {
        let began = clock.now()
        let round = SnapshotRound.write(SnapshotWriter(snapshot)) { [leases] in
            leases.holds(.snapshot)
        }
        guard case .written(let outcome) = try await leases.run(round) else { return nil }
        switch outcome {
        case .written(let parts):
            log(once: "")
            logger.info(
                "a snapshot of the fleet's state was written",
                metadata: [
                    "position": "\(snapshot.position.last)", "pieces": "\(parts)",
                    "keys": "\(snapshot.apps.reduce(0) { $0 + $1.versions.count })",
                    "milliseconds": "\(clock.now() - began)",
                ])
        case .refused:
            log(once: "the servers do not have the batch \(snapshot.position.last) of this node")
        case .stopped: log(once: "another node has that task now")
        }
        return outcome
    }

    /// Returns a copy of the state between two batches.
    private func copy() async -> NodeSnapshot {
        await withCheckedContinuation { continuation in
            follower.copy { continuation.resume(returning: $0) }
        }
    }

    /// Logs a reason for not writing unless it was the last one; nothing for an empty one.
    private func log(once reason: String) {
        let isNew = state.withLock { state in
            defer { state.logged = reason }
            return state.logged != reason
        }
        guard isNew, !reason.isEmpty else { return }
        logger.warning(
            "no snapshot of the fleet's state was written", metadata: ["reason": "\(reason)"])
    }

    /// Ends the reservation that the node made at its start, once: it follows the log, whose old
    /// batches may go.
    func endReservation() {
        let isFirst = state.withLock { state in
            defer { state.hasEndedReservation = true }
            return !state.hasEndedReservation
        }
        guard isFirst else { return }
        // A reservation that is not ended runs out.
        Task { _ = try? await leases.run(.endReservation) }
    }
}
