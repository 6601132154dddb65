/// The waits between attempts that fail: each twice as long as the one before, up to a limit.
///
/// Jitter spreads them, so that what failed together is not tried again together. All times have
/// one unit, which is the caller's.
package struct Backoff: Sendable, Hashable {
    /// The part of a wait that chance decides.
    package enum Jitter: Sendable, Hashable {
        /// All of it, from no wait at all.
        case full
        /// Half of it.
        case half
        /// A quarter, on top of it.
        case quarterMore
    }

    /// The first wait before jitter.
    package var first: Int64
    /// The longest wait before jitter.
    package let longest: Int64
    /// The part of each wait that chance decides.
    package let jitter: Jitter
    /// The number of attempts that failed in a row.
    package private(set) var failures = 0

    /// No attempt failed yet.
    package init(first: Int64, longest: Int64, jitter: Jitter) {
        self.first = first
        self.longest = longest
        self.jitter = jitter
    }

    /// Counts a failure and returns the wait before the next attempt. `random` is 64 random bits.
    package mutating func failed(random: UInt64) -> Int64 {
        let wait = wait(failures: failures, random: random)
        failures = min(failures + 1, 1_000)
        return wait
    }

    /// The last attempt succeeded: the next failure is the first one again.
    package mutating func succeeded() { failures = 0 }

    /// Returns the wait before the next attempt. `failures` is the number of failures before the
    /// last one, `random` 64 random bits.
    package func wait(failures: Int, random: UInt64) -> Int64 {
        // 2^20 of any first wait is beyond every longest in use.
        let doublings = Int64(min(max(failures, 0), 20))
        let wait = first > longest >> doublings ? longest : first << doublings
        return switch jitter {
        case .full: Self.part(of: wait, random: random)
        case .half: wait / 2 + Self.part(of: wait / 2, random: random)
        case .quarterMore: wait + Self.part(of: wait / 4, random: random)
        }
    }

    /// Returns a number from 0 to `whole`, both included, in proportion to `random`.
    package static func part(of whole: Int64, random: UInt64) -> Int64 {
        Int64(random.multipliedFullWidth(by: UInt64(whole) + 1).high)
    }
}
