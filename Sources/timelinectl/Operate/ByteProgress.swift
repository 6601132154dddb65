import Synchronization

/// Prints the number of bytes processed on standard error, at most once a second.
final class ByteProgress: Sendable {
    private let what: String
    private let told = Mutex(ContinuousClock.now)

    /// - Parameter what: The participle for the bytes, such as "copied".
    init(_ what: String) {
        self.what = what
    }

    /// Reports that `done` bytes of `total` are done.
    func reach(_ done: Int64, of total: Int64) {
        let isDue = told.withLock { told in
            guard ContinuousClock.now - told >= .seconds(1) else { return false }
            told = .now
            return true
        }
        guard isDue else { return }
        Terminal.complain("timelinectl: \(Self.text(done)) of \(Self.text(total)) \(what)")
    }

    /// Bytes for people: `512 B`, `12.3 MB`.
    static func text(_ bytes: Int64) -> String {
        let units = ["B", "kB", "MB", "GB", "TB"]
        var (number, unit) = (Double(bytes), 0)
        while number >= 1000, unit < units.count - 1 { (number, unit) = (number / 1000, unit + 1) }
        let tenths = Int((number * 10).rounded())
        return unit == 0 ? "\(bytes) B" : "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }
}
