import Glibc

/// What time it is for those who push, and how they wait.
package struct DeliveryClock: Sendable {
    /// Monotonic milliseconds.
    package var now: @Sendable () -> Int64
    /// Milliseconds since 1970.
    package var wall: @Sendable () -> Int64
    /// Waits until a moment of ``now``. Told the moment, not how long: whoever comes late to wait has
    /// the less to wait.
    package var sleep: @Sendable (Int64) async -> Void

    /// A clock of one's own.
    package init(
        now: @escaping @Sendable () -> Int64, wall: @escaping @Sendable () -> Int64,
        sleep: @escaping @Sendable (Int64) async -> Void
    ) {
        (self.now, self.wall, self.sleep) = (now, wall, sleep)
    }

    /// The machine's.
    package static let system = DeliveryClock(
        now: { milliseconds(CLOCK_MONOTONIC) }, wall: { milliseconds(CLOCK_REALTIME) },
        sleep: { try? await Task.sleep(for: .milliseconds($0 - milliseconds(CLOCK_MONOTONIC))) })

    private static func milliseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}
