import Synchronization

/// How far long work is, on standard error, no more than once a second.
final class Progress: Sendable {
    private let what: String
    private let total: Int
    private let state = Mutex((done: 0, told: ContinuousClock.now))

    /// - Parameter what: What is counted, in the plural.
    init(_ what: String, of total: Int) {
        self.what = what
        self.total = total
    }

    /// One more is done.
    func step() { tell { $0 + 1 } }

    /// So many are done.
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
