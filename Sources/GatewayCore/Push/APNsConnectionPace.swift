/// When a connection to APNs may be opened, and how many requests it may carry at once.
///
/// Connections that are opened and closed again and again look like an attack and get the address
/// blocked. One pace is kept for each pool, which is to say for each team, key and environment.
package struct APNsConnectionPace: Sendable, Hashable {
    /// The least time between two openings, in milliseconds.
    package static let intervalMin: Int64 = 1_000
    /// The longest wait after failures, in milliseconds, before jitter.
    package static let waitMax: Int64 = 300_000

    /// Openings in a row after which no request was answered.
    package private(set) var failures = 0
    /// The earliest time of the next opening, in the caller's monotonic milliseconds.
    package private(set) var nextOpening = Int64.min

    /// A connection may be opened at once.
    package init() {}

    /// A connection is opened now. Until a request on it is answered, it counts as failed.
    ///
    /// - Returns: Whether it may be; if not, nothing changes.
    package mutating func open(now: Int64, random: UInt64) -> Bool {
        guard now >= nextOpening else { return false }
        let wait = min(Self.waitMax, Self.intervalMin << Int64(min(failures, 20)))
        let jitter = Int64(random % UInt64(wait / 4 + 1))
        let (next, overflow) = now.addingReportingOverflow(wait + jitter)
        nextOpening = overflow ? .max : next
        failures = min(failures + 1, 1_000)
        return true
    }

    /// A request was answered on a connection, whatever the answer.
    package mutating func answered() {
        failures = 0
    }

    /// How many requests a connection may carry at once.
    ///
    /// - Parameters:
    ///   - announced: The peer's `SETTINGS_MAX_CONCURRENT_STREAMS`, if it sent one.
    ///   - hasSucceeded: Whether a request with a provider token succeeded on this connection;
    ///     before that APNs allows one stream.
    ///   - limit: What this program allows itself.
    package static func requestsMax(announced: Int?, hasSucceeded: Bool, limit: Int) -> Int {
        guard hasSucceeded else { return min(1, announced.map { max(0, $0) } ?? 1) }
        return max(0, min(limit, announced ?? limit))
    }
}
