import Synchronization

/// How many connections a listener may have at a time, and has.
package final class ConnectionLimit: Sendable {
    private let max: Int
    private let count = Atomic<Int>(0)

    /// No connections yet of at most `max`.
    package init(_ max: Int) { self.max = max }

    /// Connections counted in now.
    package var taken: Int { count.load(ordering: .relaxed) }

    /// Counts one in, if there is room for it.
    func take() -> Bool {
        if count.wrappingAdd(1, ordering: .relaxed).newValue <= max { return true }
        release()
        return false
    }

    /// Counts one out.
    func release() { count.wrappingSubtract(1, ordering: .relaxed) }
}
