/// How long to wait before the next try: full jitter, so that clients that lost one gateway
/// together do not come back together.
package struct Backoff: Sendable, Equatable {
    /// Upper bound of the first wait; a server's `retry` hint replaces it.
    package var base: Duration
    /// No wait is longer, but for a `Retry-After` that asks for more.
    package var cap: Duration
    /// Tries that failed in a row.
    package private(set) var failures = 0

    /// No failures yet.
    package init(base: Duration, cap: Duration) {
        self.base = base
        self.cap = cap
    }

    /// Notes a failure and draws a wait between nothing and `base * 2^failures`, at most `cap`.
    package mutating func next(using generator: inout some RandomNumberGenerator) -> Duration {
        // 2^20 of any base is beyond every cap in use; larger shifts would overflow.
        let bound = min(cap, max(base, .milliseconds(1)) * (1 << min(failures, 20)))
        if failures < Int.max { failures += 1 }
        return bound * Double.random(in: 0..<1, using: &generator)
    }

    /// The last try succeeded.
    package mutating func succeeded() {
        failures = 0
    }
}

/// A small deterministic generator (SplitMix64): jitter needs spreading, not secrecy, and a seed
/// makes a run repeatable.
package struct JitterGenerator: RandomNumberGenerator, Sendable, Equatable {
    private var state: UInt64

    /// A generator whose draws follow from `seed` alone.
    package init(seed: UInt64) {
        state = seed
    }

    /// The next 64 bits.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
