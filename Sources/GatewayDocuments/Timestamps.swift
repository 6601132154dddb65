import Foundation
import WidgetModel

/// Formats milliseconds since 1970 as RFC 3339 in UTC with milliseconds.
package func timestamp(_ milliseconds: Int64) -> String {
    let parts = calendar(milliseconds / 1000)
    return text(capacity: 24) { text in
        text.append(parts.tm_year + 1900, digits: 4)
        text.append("-")
        text.append(parts.tm_mon + 1, digits: 2)
        text.append("-")
        text.append(parts.tm_mday, digits: 2)
        text.append("T")
        text.appendTime(parts)
        text.append(".")
        text.append(Int32(truncatingIfNeeded: milliseconds % 1000), digits: 3)
        text.append("Z")
    }
}

/// Returns the second since 1970 of an RFC 3339 `date-time`, without its fraction; `nil` for any
/// other text.
package func seconds(ofTimestamp text: String) -> Int64? {
    guard CloudEvent.isTimestamp(text) else { return nil }
    let bytes = Array(text.utf8)
    // Checked above: these positions hold digits.
    func number(_ range: Range<Int>) -> Int32 {
        bytes[range].reduce(0) { $0 * 10 + Int32($1 - UInt8(ascii: "0")) }
    }
    var parts = tm()
    parts.tm_year = number(0..<4) - 1900
    parts.tm_mon = number(5..<7) - 1
    parts.tm_mday = number(8..<10)
    parts.tm_hour = number(11..<13)
    parts.tm_min = number(14..<16)
    parts.tm_sec = number(17..<19)
    let seconds = Int64(timegm(&parts))
    guard bytes.last.map({ $0 | 0x20 }) != UInt8(ascii: "z") else { return seconds }
    let sign = bytes.count - 6
    let offset =
        Int64(number(sign + 1..<sign + 3)) * 3600 + Int64(number(sign + 4..<sign + 6)) * 60
    return bytes[sign] == UInt8(ascii: "-") ? seconds + offset : seconds - offset
}

/// Formats a second since 1970 as an HTTP date (RFC 9110 section 5.6.7).
package func httpDate(_ seconds: Int64) -> String {
    let parts = calendar(seconds)
    return text(capacity: 29) { text in
        text.append(days[Int(parts.tm_wday)])
        text.append(", ")
        text.append(parts.tm_mday, digits: 2)
        text.append(months[Int(parts.tm_mon)])
        text.append(parts.tm_year + 1900, digits: 4)
        text.append(" ")
        text.appendTime(parts)
        text.append(" GMT")
    }
}

private let days: [StaticString] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
private let months: [StaticString] = [
    " Jan ", " Feb ", " Mar ", " Apr ", " May ", " Jun ", " Jul ", " Aug ", " Sep ", " Oct ",
    " Nov ", " Dec ",
]

private func calendar(_ seconds: Int64) -> tm {
    var seconds = time_t(seconds)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    return parts
}

private func text(capacity: Int, _ write: (inout [UInt8]) -> Void) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(capacity)
    write(&bytes)
    return String(decoding: bytes, as: UTF8.self)
}

extension [UInt8] {
    fileprivate mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { append(contentsOf: $0) }
    }

    /// Appends a nonnegative number, padded with zeros.
    fileprivate mutating func append(_ number: Int32, digits: Int) {
        var place: Int32 = 1
        for _ in 1..<digits { place *= 10 }
        while place > 0 {
            append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / place % 10))
            place /= 10
        }
    }

    fileprivate mutating func appendTime(_ parts: tm) {
        append(parts.tm_hour, digits: 2)
        append(":")
        append(parts.tm_min, digits: 2)
        append(":")
        append(parts.tm_sec, digits: 2)
    }
}
