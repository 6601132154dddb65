import Synchronization

/// Prints the progress of long work on standard error, at most once a second.
final class Progress: Sendable {
    private let what: String
    private let text: @Sendable (Int64) -> String
    private let state = Mutex((done: Int64(0), told: ContinuousClock.now))

    /// - Parameter what: The noun for the counted things in the plural, or a participle for bytes.
    init(_ what: String, text: @escaping @Sendable (Int64) -> String = { "\($0)" }) {
        (self.what, self.text) = (what, text)
    }

    /// Reports that so many of `total` are done; without a number, one more than before.
    func reach(_ done: Int64? = nil, of total: Int64) {
        let told: Int64? = state.withLock { state in
            state.done = done ?? state.done + 1
            guard ContinuousClock.now - state.told >= .seconds(1) else { return nil }
            state.told = .now
            return state.done
        }
        if let told { Terminal.complain("timelinectl: \(text(told)) of \(text(total)) \(what)") }
    }

    /// Bytes for people: `512 B`, `12.3 MB`.
    static func bytes(_ bytes: Int64) -> String {
        let units = ["B", "kB", "MB", "GB", "TB"]
        var (number, unit) = (Double(bytes), 0)
        while number >= 1000, unit < units.count - 1 { (number, unit) = (number / 1000, unit + 1) }
        let tenths = Int((number * 10).rounded())
        return unit == 0 ? "\(bytes) B" : "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }
}
