/// The time, handed in wherever it is needed, so that a test can hold it still.
package struct GatewayClock: Sendable {
    /// Returns monotonic milliseconds.
    package let now: @Sendable () -> Int64
    /// Returns milliseconds since 1970.
    package let wallMilliseconds: @Sendable () -> Int64
    /// Waits until a moment of ``now``, and not for a duration, so that a late call waits for less.
    package let sleep: @Sendable (Int64) async -> Void

    /// Creates a clock from its readings.
    package init(
        now: @escaping @Sendable () -> Int64, wallMilliseconds: @escaping @Sendable () -> Int64,
        sleep: @escaping @Sendable (Int64) async -> Void
    ) {
        (self.now, self.wallMilliseconds, self.sleep) = (now, wallMilliseconds, sleep)
    }

    /// Returns seconds since 1970.
    package func wallSeconds() -> Int64 { wallMilliseconds() / 1_000 }
}
