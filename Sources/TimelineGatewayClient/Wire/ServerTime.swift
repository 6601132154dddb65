import WidgetModel

/// The gateway's clock according to the `Date` fields of its responses, so that a device with a
/// wrong clock still evaluates `exp` correctly.
package struct ServerTime: Sendable, Equatable {
    private var date: Int64?
    private var seen: Duration = .zero

    package init() {}

    /// Records the `Date` field of a response that arrived at `now`; a malformed one is ignored.
    package mutating func note(_ field: String?, now: Duration) {
        guard let field, let seconds = HTTPDate.seconds(field) else { return }
        date = seconds
        seen = now
    }

    /// Returns the gateway's time at `now`, in seconds since 1970; `fallback` before any response.
    package func seconds(now: Duration, fallback: Int64) -> Int64 {
        guard let date else { return fallback }
        return date + max(0, (now - seen).components.seconds)
    }
}
