import Foundation

/// RFC 3339 in UTC with milliseconds.
func timestamp(_ milliseconds: Int64) -> String {
    let parts = calendar(milliseconds / 1000)
    let date = [
        padded(Int(parts.tm_year) + 1900, 4), padded(Int(parts.tm_mon) + 1, 2),
        padded(Int(parts.tm_mday), 2),
    ].joined(separator: "-")
    let time = [
        padded(Int(parts.tm_hour), 2), padded(Int(parts.tm_min), 2), padded(Int(parts.tm_sec), 2),
    ].joined(separator: ":")
    return "\(date)T\(time).\(padded(Int(milliseconds % 1000), 3))Z"
}

/// HTTP's date (RFC 9110 section 5.6.7) of a second since 1970.
func httpDate(_ seconds: Int64) -> String {
    let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    let parts = calendar(seconds)
    let day = days[Int(parts.tm_wday)]
    let month = months[Int(parts.tm_mon)]
    let time = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { padded(Int($0), 2) }
        .joined(separator: ":")
    let year = padded(Int(parts.tm_year) + 1900, 4)
    return "\(day), \(padded(Int(parts.tm_mday), 2)) \(month) \(year) \(time) GMT"
}

private func calendar(_ seconds: Int64) -> tm {
    var seconds = time_t(seconds)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    return parts
}

private func padded(_ number: Int, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
}
