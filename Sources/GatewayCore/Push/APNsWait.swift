import WidgetModel

/// The kind of wait before a push is retried.
package enum APNsWait: Sendable, Hashable {
    /// No wait.
    case atOnce
    /// The wait for a working connection: from a second to five minutes.
    case connection
    /// The wait for this one device: from a minute to four hours.
    case device
    /// The wait for APNs to recover: from a quarter of an hour, or a minute for
    /// ``WidgetModel/Urgency/high``, to four hours.
    case service
    /// At least the wait in seconds that a service asked for.
    case requested(Int64)
    /// At least the wait in seconds until what all pushes need may be there: up to five minutes, if
    /// that is not longer.
    case shared(Int64)

    /// The wait for a service over HTTP, which may have requested one in seconds.
    package init(retryAfter: Int64?) {
        self = retryAfter.map { .requested($0) } ?? .device
    }

    /// Returns the wait in ms: doubled with each of the previous `failures`, plus up to a quarter
    /// by `random`, so that pushes which failed together are not retried together.
    package func milliseconds(failures: Int, urgency: Urgency, random: UInt64) -> Int64 {
        let (first, longest): (Int64, Int64) =
            switch self {
            case .atOnce: (0, 0)
            case .connection: (1_000, 300_000)
            case .device: (60_000, 14_400_000)
            case .service: (urgency == .high ? 60_000 : 900_000, 14_400_000)
            case .requested(let seconds):
                (max(1, seconds) * 1_000, max(14_400_000, seconds * 1_000))
            case .shared(let seconds):
                (max(1, seconds) * 1_000, max(300_000, seconds * 1_000))
            }
        return Backoff(first: first, longest: longest, jitter: .quarterMore)
            .wait(failures: failures, random: random)
    }
}
