/// Dates of HTTP fields (RFC 9110 section 5.6.7).
package enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Returns the seconds since 1970 for a date in any of the three forms; `nil` for anything
    /// else. Ignores the name of the day. A year of two digits is in 1970...2069.
    ///
    ///     Sun, 06 Nov 1994 08:49:37 GMT
    ///     Sunday, 06-Nov-94 08:49:37 GMT
    ///     Sun Nov  6 08:49:37 1994
    package static func seconds(_ text: String) -> Int64? {
        var parts = text.split(separator: " ")
        if parts.count == 4, parts[3] == "GMT" {
            let date = parts[1].split(separator: "-", omittingEmptySubsequences: false)
            guard date.count == 3, let year = number(date[2], 0...99) else { return nil }
            return seconds(
                year: year + (year < 70 ? 2000 : 1900), month: date[1], day: date[0],
                time: parts[2])
        }
        if parts.count == 5 {
            parts = [parts[0], parts[2], parts[1], parts[4], parts[3], "GMT"]
        }
        guard parts.count == 6, parts[5] == "GMT", let year = number(parts[3], 1970...9999) else {
            return nil
        }
        return seconds(year: year, month: parts[2], day: parts[1], time: parts[4])
    }

    private static func seconds(
        year: Int64, month: Substring, day: Substring, time: Substring
    ) -> Int64? {
        let time = time.split(separator: ":", omittingEmptySubsequences: false)
        guard let day = number(day, 1...31), let month = months.firstIndex(of: String(month)),
            time.count == 3, let hour = number(time[0], 0...23),
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

    /// Returns the days since 1970 in the proleptic Gregorian calendar. Years are counted from
    /// March, so that the leap day is the last of its year.
    private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        let fromMarch = (month + 9) % 12
        let shifted = year - fromMarch / 10
        return 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400
            + (fromMarch * 306 + 5) / 10 + (day - 1) - 719_468
    }
}
