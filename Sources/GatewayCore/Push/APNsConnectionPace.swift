import WidgetModel

/// Limits when a connection to APNs may be opened, and how many requests it may carry at once.
///
/// Opening and closing connections repeatedly looks like an attack and leads to a block of the IP
/// address. There is one instance for each pool, that is for each team, key and environment.
package struct APNsConnectionPace: Sendable, Hashable {
    /// The shortest interval between two openings, ms.
    package static let intervalMin: Int64 = 1_000
    /// The longest wait after failures, ms, before jitter.
    package static let waitMax: Int64 = 300_000

    /// Its failures are openings in a row after which no request was answered.
    private var backoff = Backoff(
        first: Self.intervalMin, longest: Self.waitMax, jitter: .quarterMore)
    /// The earliest time of the next opening, in the caller's monotonic milliseconds.
    package private(set) var nextOpening = Int64.min

    /// Creates an instance that allows an opening at once.
    package init() {}

    /// Records the opening of a connection, if allowed. It counts as failed until a request on it
    /// is answered.
    ///
    /// - Returns: Whether it is allowed; if not, nothing changes.
    package mutating func open(now: Int64, random: UInt64) -> Bool {
        guard now >= nextOpening else { return false }
        let (next, overflow) = now.addingReportingOverflow(backoff.failed(random: random))
        nextOpening = overflow ? .max : next
        return true
    }

    /// Records that a request on a connection was answered, whatever the response.
    package mutating func answered() {
        backoff.succeeded()
    }

    /// Returns the maximum number of concurrent requests on a connection.
    ///
    /// - Parameters:
    ///   - announced: The peer's `SETTINGS_MAX_CONCURRENT_STREAMS`; `nil` if it sent none.
    ///   - hasSucceeded: Whether a request with a provider token succeeded on this connection;
    ///     until then APNs allows one stream.
    ///   - limit: The limit of this program.
    package static func requestsMax(announced: Int?, hasSucceeded: Bool, limit: Int) -> Int {
        guard hasSucceeded else { return min(1, announced.map { max(0, $0) } ?? 1) }
        return max(0, min(limit, announced ?? limit))
    }
}
