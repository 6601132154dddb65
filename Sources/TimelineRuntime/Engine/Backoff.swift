import WidgetModel

extension Backoff {
    /// Waits with full jitter: clients that lost one gateway together do not come back together.
    ///
    /// - Parameters:
    ///   - base: The upper bound of the first wait; a server's `retry` hint replaces it.
    ///   - cap: The longest wait, unless a `Retry-After` asks for more.
    package init(base: Duration, cap: Duration) {
        self.init(
            first: max(Self.nanoseconds(base), 1_000_000), longest: Self.nanoseconds(cap),
            jitter: .full)
    }

    /// Takes a server's `retry` hint: the next wait is at most so long, doubled by each failure.
    package mutating func rebase(_ hint: Duration) {
        first = min(max(Self.nanoseconds(hint), 100_000_000), longest)
    }

    /// Counts a failure and returns the wait before the next attempt.
    package mutating func next(using generator: inout some RandomNumberGenerator) -> Duration {
        .nanoseconds(failed(random: generator.next()))
    }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        Int64(clamping: duration.attoseconds / 1_000_000_000)
    }
}
