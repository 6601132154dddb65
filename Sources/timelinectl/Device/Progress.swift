import Synchronization

/// Prints the progress of long work on standard error, at most once a second.
final class Progress: Sendable {
    private let what: String
    private let total: Int
    private let state = Mutex((done: 0, told: ContinuousClock.now))

    /// - Parameter what: The noun for the counted things, in the plural.
    init(_ what: String, of total: Int) {
        self.what = what
        self.total = total
    }

    /// Counts one more as done.
    func step() { tell { $0 + 1 } }

    func reach(_ done: Int) { tell { _ in done } }

    private func tell(_ next: (Int) -> Int) {
        let done: Int? = state.withLock { state in
            state.done = next(state.done)
            guard ContinuousClock.now - state.told >= .seconds(1) else { return nil }
            state.told = .now
            return state.done
        }
        if let done { Terminal.complain("timelinectl: \(done) of \(total) \(what)") }
    }
}
