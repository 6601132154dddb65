import GatewayCore
import GatewayStorage
import NIOCore
import Synchronization

/// Looks at the gateway for probes.
final class Readiness: Sendable {
    private struct State {
        var health = Health()
        var isServing = false
        var wasServing = false
    }

    private let state = Mutex(State())

    /// The listener is up, or no longer.
    func set(serving: Bool) {
        state.withLock {
            $0.isServing = serving
            $0.wasServing = $0.wasServing || serving
        }
    }

    /// Whether the listener was ever up.
    var wasServing: Bool { state.withLock { $0.wasServing } }

    /// What fails now.
    func verdict(
        _ sequencer: Sequencer, certificateEnds: Int64, wallSeconds: Int64
    ) -> Health.Verdict {
        // The head first: what is accepted meanwhile must not look like a lag.
        let figures = sequencer.store.figures
        let loops = sequencer.loops.map(\.position).min() ?? 0
        let pushes = sequencer.push?.position
        let now = Int64(NIODeadline.now().uptimeNanoseconds / 1_000_000)
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
