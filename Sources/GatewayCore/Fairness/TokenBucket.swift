/// A rate that a ``TokenBucket`` refills at, and how much it holds.
package struct TokenRate: Sendable, Hashable {
    /// Tokens that come back per period.
    package let count: Int64
    /// The period, in milliseconds.
    package let period: Int64
    /// Tokens that a full bucket holds: the largest burst.
    package let burst: Int64

    /// The highest count and burst.
    package static let countMax: Int64 = 1_000_000_000
    /// The longest period: one day, in milliseconds.
    package static let periodMax: Int64 = 86_400_000

    /// Creates a rate; values outside the limits are clamped to them.
    package init(count: Int64, period: Int64, burst: Int64) {
        self.count = min(max(count, 1), Self.countMax)
        self.period = min(max(period, 1), Self.periodMax)
        self.burst = min(max(burst, 1), Self.countMax)
    }

    /// The size of a full bucket in units; `period` units make one token, and `count` units come
    /// back each millisecond. Whole numbers, so that nothing is lost however often a bucket is
    /// asked.
    var capacity: Int64 { burst * period }

    /// The milliseconds in which `units` come back, rounded up.
    func milliseconds(for units: Int64) -> Int64 {
        units <= 0 ? 0 : (units - 1) / count + 1
    }
}

/// A token bucket: lets a burst through at once and a steady rate afterwards.
///
/// A request is granted while at least one token is left. Its whole cost is charged even if that is
/// more than there is, as the cost of a body is known only once it was read: the next requests
/// wait until the bucket is above zero again, so that the rate holds over time. The debt is at most
/// one full bucket.
package struct TokenBucket: Sendable, Hashable {
    /// Units missing from a full bucket.
    private var missing: Int64
    /// The monotonic time, in milliseconds, at which `missing` was true.
    private var updatedAt: Int64

    /// The result of a request for tokens.
    package enum Verdict: Sendable, Hashable {
        /// The tokens were charged.
        case granted
        /// Nothing was charged; a token is there after that many milliseconds, at least 1.
        case refused(retryAfter: Int64)
    }

    /// A full bucket.
    package init(now: Int64) {
        missing = 0
        updatedAt = now
    }

    /// Asks for `tokens`, and charges them if at least one is left.
    package mutating func take(_ tokens: Int64 = 1, at rate: TokenRate, now: Int64) -> Verdict {
        refill(at: rate, now: now)
        // One whole token has to be there: `period` units.
        let lacking = missing - (rate.capacity - rate.period)
        guard lacking <= 0 else {
            return .refused(retryAfter: rate.milliseconds(for: lacking))
        }
        add(tokens, at: rate)
        return .granted
    }

    /// Charges tokens for something that was granted before its cost was known.
    package mutating func charge(_ tokens: Int64, at rate: TokenRate, now: Int64) {
        refill(at: rate, now: now)
        add(tokens, at: rate)
    }

    /// The whole tokens that are left.
    package func remaining(at rate: TokenRate, now: Int64) -> Int64 {
        var bucket = self
        bucket.refill(at: rate, now: now)
        return max(0, rate.capacity - bucket.missing) / rate.period
    }

    /// The milliseconds until the bucket is full; 0 for a full one.
    package func untilFull(at rate: TokenRate, now: Int64) -> Int64 {
        var bucket = self
        bucket.refill(at: rate, now: now)
        return rate.milliseconds(for: bucket.missing)
    }

    private mutating func refill(at rate: TokenRate, now: Int64) {
        // A clock that goes back refills nothing, and is not counted twice when it comes again.
        guard now > updatedAt else { return }
        let (elapsed, overflows) = now.subtractingReportingOverflow(updatedAt)
        let (units, isMore) = elapsed.multipliedReportingOverflow(by: rate.count)
        missing = overflows || isMore ? 0 : max(0, missing - units)
        updatedAt = now
    }

    private mutating func add(_ tokens: Int64, at rate: TokenRate) {
        let (units, overflows) = max(tokens, 0).multipliedReportingOverflow(by: rate.period)
        let (sum, isMore) = missing.addingReportingOverflow(units)
        missing = overflows || isMore ? 2 * rate.capacity : min(sum, 2 * rate.capacity)
    }
}
