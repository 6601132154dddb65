import GatewayCore
import GatewayDelivery
import Synchronization

/// Time that passes only when a test lets it, for all who push and for APNs.
final class HeldClock: Sendable {
    private struct State {
        var now: Int64 = 1_000_000
        var sleepers: [(until: Int64, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())
    /// What the wall clock says more, in milliseconds.
    private let wallAhead = GatewayClock.system.wallMilliseconds() - 1_000_000

    /// Monotonic milliseconds.
    var now: Int64 { state.withLock { $0.now } }
    /// Milliseconds since 1970.
    var wall: Int64 { wall(at: now) }

    /// What the wall clock says at a moment.
    func wall(at moment: Int64) -> Int64 { moment + wallAhead }

    /// As those who push take it.
    var gateway: GatewayClock {
        GatewayClock(
            now: { self.now }, wallMilliseconds: { self.wall },
            sleep: { await self.sleep(until: $0) })
    }

    /// Who comes when the moment has passed is not kept: nothing would wake it.
    private func sleep(until moment: Int64) async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if moment > state.now { state.sleepers.append((moment, continuation)) }
                return moment <= state.now
            }
            if isOver { continuation.resume() }
        }
    }

    /// When the first of those who sleep wants to be woken.
    var nextWaking: Int64? { state.withLock { $0.sleepers.lazy.map(\.until).min() } }

    /// Moves the time, and wakes who wants to be.
    func advance(to moment: Int64) {
        let woken = state.withLock { state in
            state.now = max(state.now, moment)
            let now = state.now
            defer { state.sleepers.removeAll { $0.until <= now } }
            return state.sleepers.filter { $0.until <= now }
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }

    /// Wakes all, so that nothing is left behind.
    func end() {
        advance(to: .max / 2)
    }
}
