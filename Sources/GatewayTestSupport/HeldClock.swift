import Foundation
import GatewayCore
import Synchronization

/// A clock that advances only when a test lets it.
package final class HeldClock: Sendable {
    private struct State {
        var now: Int64 = 1_000_000
        var sleepers: [(until: Int64, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())
    /// The difference from the monotonic clock to the wall clock, in milliseconds.
    private let wallAhead = Int64(Date().timeIntervalSince1970 * 1_000) - 1_000_000

    /// Creates a clock at one million milliseconds.
    package init() {}

    /// The time in monotonic milliseconds.
    package var now: Int64 { state.withLock { $0.now } }
    /// The time in milliseconds since 1970.
    package var wall: Int64 { wall(at: now) }

    /// Returns the wall clock's time at a monotonic time.
    package func wall(at moment: Int64) -> Int64 { moment + wallAhead }

    /// The clock as the gateway uses it.
    package var gateway: GatewayClock {
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
    package var nextWaking: Int64? { state.withLock { $0.sleepers.lazy.map(\.until).min() } }

    /// Advances the time, and wakes the sleepers that are due.
    package func advance(to moment: Int64) {
        let woken = state.withLock { state in
            state.now = max(state.now, moment)
            let now = state.now
            defer { state.sleepers.removeAll { $0.until <= now } }
            return state.sleepers.filter { $0.until <= now }
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }

    /// Wakes all sleepers, so that none is left behind.
    package func end() {
        advance(to: .max / 2)
    }
}
