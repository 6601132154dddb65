/// Parses durations in human notation.
package enum DurationText {
    /// Returns the seconds of `90`, `90s`, `15m`, `1h` or `30d`; `nil` for anything else.
    package static func seconds(_ text: String) -> Int64? {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let last = text.last else { return nil }
        guard let unit = units[last] else { return Int64(text) }
        guard let number = Int64(text.dropLast()), number >= 0 else { return nil }
        let (product, overflow) = number.multipliedReportingOverflow(by: unit)
        return overflow ? nil : product
    }
}
