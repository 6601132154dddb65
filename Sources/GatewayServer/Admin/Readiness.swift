import GatewayCore
import GatewayEngine
import GatewayStorage
import Synchronization

/// Determines the gateway's health for probes.
package final class Readiness: Sendable {
    private struct State {
        var health = Health()
        var isServing = false
    }

    private let state = Mutex(State())

    /// Creates a state that is not ready yet.
    package init() {}

    /// Records whether the listener is up.
    package func set(serving: Bool) {
        state.withLock { $0.isServing = serving }
    }

    /// Returns the parts that fail now.
    func verdict(of engine: Engine, certificateEnds: Int64) -> Health.Verdict {
        // The head first: entries accepted in the meantime must not look like a lag.
        let figures = engine.store.figures
        let loops = engine.loops.all.map(\.position).min() ?? 0
        let pushes = engine.push?.position
        let (now, wallSeconds) = (engine.clock.now(), engine.clock.wallSeconds())
        return state.withLock { state in
            state.health.judge(
                Health.Snapshot(
                    isServing: state.isServing, head: figures.head, loops: loops, pushes: pushes,
                    commits: UInt64(max(0, figures.commits)),
                    failedCommits: UInt64(max(0, figures.failedCommits)),
                    isDiskRefusing: figures.isRefusingWrites
                        || engine.leader?.state.objection != nil,
                    waitingWrites: figures.waitingJobs, certificateEnds: certificateEnds),
                now: now, wallSeconds: wallSeconds)
        }
    }
}
