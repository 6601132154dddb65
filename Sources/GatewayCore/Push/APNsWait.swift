import WidgetModel

/// How long a push waits before it is tried again.
package enum APNsWait: Sendable, Hashable, CaseIterable {
    /// Not at all.
    case atOnce
    /// Until a connection is likely to work: from a second, up to five minutes.
    case connection
    /// Until this one device is likely to be pushed to again: from a minute, up to four hours.
    case device
    /// Until APNs is likely to work again: from a quarter of an hour, or a minute for
    /// ``WidgetModel/Urgency/high``, up to four hours.
    case service

    /// The wait in milliseconds: doubled with each of `failures` before this one, with up to a
    /// quarter more by `random`, so that what failed together is not tried together.
    package func milliseconds(failures: Int, urgency: Urgency, random: UInt64) -> Int64 {
        let (first, longest): (Int64, Int64) =
            switch self {
            case .atOnce: (0, 0)
            case .connection: (1_000, 300_000)
            case .device: (60_000, 14_400_000)
            case .service: (urgency == .high ? 60_000 : 900_000, 14_400_000)
            }
        let wait = min(longest, first << Int64(min(max(failures, 0), 20)))
        return wait + Int64(random % UInt64(wait / 4 + 1))
    }
}
