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

/// Dates of HTTP fields (RFC 9110 section 5.6.7), the fixed-length form only.
package enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    package static func seconds(_ text: String) -> Int64? {
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[5] == "GMT", let day = number(parts[1], 1...31),
            let month = months.firstIndex(of: String(parts[2])),
            let year = number(parts[3], 1970...9999)
        else { return nil }
        let time = parts[4].split(separator: ":", omittingEmptySubsequences: false)
        guard time.count == 3, let hour = number(time[0], 0...23),
            let minute = number(time[1], 0...59), let second = number(time[2], 0...60)
        else { return nil }
        let days = daysSince1970(year: year, month: Int64(month) + 1, day: day)
        return days * 86_400 + hour * 3_600 + minute * 60 + second
    }

    private static func number(_ text: Substring, _ range: ClosedRange<Int64>) -> Int64? {
        guard text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let value = Int64(text),
            range.contains(value)
        else { return nil }
        return value
    }

    /// Days of the proleptic Gregorian calendar; years are counted from March, so that the leap
    /// day is the last of its year.
    private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        let fromMarch = (month + 9) % 12
        let shifted = year - fromMarch / 10
        return 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400
            + (fromMarch * 306 + 5) / 10 + (day - 1) - 719_468
    }
}
