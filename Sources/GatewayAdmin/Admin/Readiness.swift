import GatewayCore
import GatewayEngine
import GatewayStorage
import Synchronization

/// Looks at the gateway for probes.
package final class Readiness: Sendable {
    private struct State {
        var health = Health()
        var isServing = false
        var wasServing = false
    }

    private let state = Mutex(State())

    /// Not ready yet.
    package init() {}

    /// The listener is up, or no longer.
    package func set(serving: Bool) {
        state.withLock {
            $0.isServing = serving
            $0.wasServing = $0.wasServing || serving
        }
    }

    /// Whether the listener was ever up.
    package var wasServing: Bool { state.withLock { $0.wasServing } }

    /// What fails now.
    func verdict(
        store: SQLiteStore, loops: ShardLoops, push: PushLoop?, certificateEnds: Int64,
        clock: GatewayClock
    ) -> Health.Verdict {
        // The head first: what is accepted meanwhile must not look like a lag.
        let figures = store.figures
        let loops = loops.all.map(\.position).min() ?? 0
        let pushes = push?.position
        let (now, wallSeconds) = (clock.now(), clock.wallSeconds())
        return state.withLock { state in
            state.health.judge(
                Health.Look(
                    isServing: state.isServing, head: figures.head, loops: loops, pushes: pushes,
                    commits: UInt64(max(0, figures.commits)),
                    failedCommits: UInt64(max(0, figures.failedCommits)),
                    isDiskRefusing: figures.isRefusingWrites,
                    waitingWrites: figures.waitingJobs, certificateEnds: certificateEnds),
                now: now, wallSeconds: wallSeconds)
        }
    }
}
