import GatewayCore
import GatewayDelivery
import Synchronization

/// A clock that advances only when a test lets it, for the push code and for APNs.
final class HeldClock: Sendable {
    private struct State {
        var now: Int64 = 1_000_000
        var sleepers: [(until: Int64, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())
    /// The difference from the monotonic clock to the wall clock, in milliseconds.
    private let wallAhead = GatewayClock.system.wallMilliseconds() - 1_000_000

    /// The time in monotonic milliseconds.
    var now: Int64 { state.withLock { $0.now } }
    /// The time in milliseconds since 1970.
    var wall: Int64 { wall(at: now) }

    /// Returns the wall clock's time at a monotonic time.
    func wall(at moment: Int64) -> Int64 { moment + wallAhead }

    /// The clock as the gateway uses it.
    var gateway: GatewayClock {
        GatewayClock(
            now: { self.now }, wallMilliseconds: { self.wall },
            sleep: { await self.sleep(until: $0) })
    }

    /// Sleeps until a time. Returns at once if it has passed, because nothing would wake the
    /// sleeper.
    private func sleep(until moment: Int64) async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if moment > state.now { state.sleepers.append((moment, continuation)) }
                return moment <= state.now
            }
            if isOver { continuation.resume() }
        }
    }

    /// The earliest time at which a sleeper is due.
    var nextWaking: Int64? { state.withLock { $0.sleepers.lazy.map(\.until).min() } }

    /// Advances the time, and wakes the sleepers that are due.
    func advance(to moment: Int64) {
        let woken = state.withLock { state in
            state.now = max(state.now, moment)
            let now = state.now
            defer { state.sleepers.removeAll { $0.until <= now } }
            return state.sleepers.filter { $0.until <= now }
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }

    /// Wakes all sleepers, so that none is left behind.
    func end() {
        advance(to: .max / 2)
    }
}
