/// The refill rate and the capacity of a ``TokenBucket``.
public struct TokenRate: Sendable, Hashable {
    /// The number of tokens added per period.
    public let count: Int64
    /// The period, ms.
    public let period: Int64
    /// The capacity of a bucket in tokens: the largest burst.
    public let burst: Int64

    /// The maximum of count and burst.
    public static let countMax: Int64 = 1_000_000_000
    /// The longest period, ms: one day.
    public static let periodMax: Int64 = 86_400_000

    /// Creates a rate; values outside the limits are clamped to them.
    public init(count: Int64, period: Int64, burst: Int64) {
        self.count = min(max(count, 1), Self.countMax)
        self.period = min(max(period, 1), Self.periodMax)
        self.burst = min(max(burst, 1), Self.countMax)
    }

    /// The capacity in units: `period` units are one token, and `count` units are added each
    /// millisecond. Integers avoid rounding errors, however often a bucket is used.
    var capacity: Int64 { burst * period }

    /// Returns the time to refill `units`, ms, rounded up.
    func milliseconds(for units: Int64) -> Int64 {
        units <= 0 ? 0 : (units - 1) / count + 1
    }
}

/// A token bucket: allows a burst at once and a steady rate afterwards.
///
/// A request is granted while at least one token is left. Its whole cost is charged even if it
/// exceeds the remaining tokens, because the cost of a body is known only after reading it: the
/// next requests wait until the bucket is above zero again, so that the rate holds over time. The
/// debt is at most one full bucket.
public struct TokenBucket: Sendable, Hashable {
    /// The units missing from a full bucket.
    private var missing: Int64
    /// The monotonic time of `missing`, ms.
    private var updatedAt: Int64

    /// The result of a request for tokens.
    public enum Verdict: Sendable, Hashable {
        /// The tokens were charged.
        case granted
        /// Nothing was charged; a token is available after this time, ms, at least 1.
        case refused(retryAfter: Int64)
    }

    /// Creates a full bucket.
    public init(now: Int64) {
        missing = 0
        updatedAt = now
    }

    /// Requests `tokens`, and charges them if at least one is left.
    public mutating func take(_ tokens: Int64 = 1, at rate: TokenRate, now: Int64) -> Verdict {
        refill(at: rate, now: now)
        // At least one whole token, which is `period` units, must be left.
        let lacking = missing - (rate.capacity - rate.period)
        guard lacking <= 0 else {
            return .refused(retryAfter: rate.milliseconds(for: lacking))
        }
        add(tokens, at: rate)
        return .granted
    }

    /// Charges tokens for a request that was granted before its cost was known.
    public mutating func charge(_ tokens: Int64, at rate: TokenRate, now: Int64) {
        refill(at: rate, now: now)
        add(tokens, at: rate)
    }

    /// Returns the whole tokens that are left.
    public func remaining(at rate: TokenRate, now: Int64) -> Int64 {
        var bucket = self
        bucket.refill(at: rate, now: now)
        return max(0, rate.capacity - bucket.missing) / rate.period
    }

    /// Returns the time until the bucket is full, ms; 0 for a full one.
    public func untilFull(at rate: TokenRate, now: Int64) -> Int64 {
        var bucket = self
        bucket.refill(at: rate, now: now)
        return rate.milliseconds(for: bucket.missing)
    }

    private mutating func refill(at rate: TokenRate, now: Int64) {
        // A clock that goes back refills nothing, and the repeated time is not counted twice.
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
