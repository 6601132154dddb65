import WidgetModel

/// Parses the wait that an endpoint requests.
package enum RetryAfter {
    /// Returns the seconds in a `Retry-After` field, 0...``WebhookSchedule/retryAfterMax``; `nil`
    /// when it has neither form of RFC 9110 section 10.2.3.
    ///
    /// - Parameter now: The time in seconds since 1970, for a field with a date.
    package static func seconds(_ field: String, now: Int64) -> Int64? {
        let longest = WebhookSchedule.retryAfterMax / 1_000
        if !field.isEmpty, field.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            return min(Int64(field) ?? longest, longest)
        }
        guard let date = HTTPDate.seconds(field) else { return nil }
        return min(max(date.elapsed(since: now), 0), longest)
    }
}
