import Synchronization

/// A count that only grows; thread-safe.
package final class Counter: Sendable {
    private let count = Atomic<UInt64>(0)

    package init() {}

    /// Adds and returns the new count.
    @discardableResult
    package func increment(by amount: UInt64 = 1) -> UInt64 {
        count.wrappingAdd(amount, ordering: .relaxed).newValue
    }

    package var value: UInt64 { count.load(ordering: .relaxed) }
}

/// A mutex that can be an array element; `Mutex` itself cannot, because it is not copyable.
final class Mutexed<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>

    init(_ value: Value) {
        mutex = Mutex(value)
    }

    func withLock<Result: Sendable>(_ body: (inout sending Value) -> Result) -> Result {
        mutex.withLock { body(&$0) }
    }
}
