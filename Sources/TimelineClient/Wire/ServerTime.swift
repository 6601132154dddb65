import WidgetModel

/// The gateway's clock as its `Date` fields show it, so that a device whose clock is wrong still
/// judges `exp` rightly.
package struct ServerTime: Sendable, Equatable {
    private var date: Int64?
    private var seen: Duration = .zero

    /// Nothing seen yet.
    package init() {}

    /// Takes the `Date` field of an answer that arrived at `now`; a malformed one is ignored.
    package mutating func note(_ field: String?, now: Duration) {
        guard let field, let seconds = HTTPDate.seconds(field) else { return }
        date = seconds
        seen = now
    }

    /// The gateway's time at `now`, in seconds since 1970; `fallback` before any answer.
    package func seconds(now: Duration, fallback: Int64) -> Int64 {
        guard let date else { return fallback }
        return date + max(0, (now - seen).components.seconds)
    }
}
