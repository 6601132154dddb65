/// Formats sizes for display.
package enum ByteCount {
    /// Returns a size with a unit and at most one decimal, such as `1.2 MB`.
    package static func text(_ bytes: Int64) -> String {
        let units = ["bytes", "kB", "MB", "GB"]
        var (size, unit) = (Double(max(0, bytes)), 0)
        while size >= 1_000, unit < units.count - 1 {
            size /= 1_000
            unit += 1
        }
        guard unit > 0 else { return "\(max(0, bytes)) bytes" }
        let tenths = Int((size * 10).rounded())
        return tenths >= 100 || tenths % 10 == 0
            ? "\(tenths / 10) \(units[unit])" : "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }
}
