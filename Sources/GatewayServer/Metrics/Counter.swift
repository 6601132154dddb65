import Synchronization

/// A count that only grows; any thread adds, any thread reads.
final class Counter: Sendable {
    private let count = Atomic<UInt64>(0)

    /// Adds and returns the new count.
    @discardableResult
    func increment(by amount: UInt64 = 1) -> UInt64 {
        count.wrappingAdd(amount, ordering: .relaxed).newValue
    }

    /// The count now.
    var value: UInt64 { count.load(ordering: .relaxed) }
}

/// A mutex that can be an element of an array, which `Mutex` itself, not being copyable, cannot.
final class Mutexed<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>

    init(_ value: Value) {
        mutex = Mutex(value)
    }

    func withLock<Result: Sendable>(_ body: (inout sending Value) -> Result) -> Result {
        mutex.withLock { body(&$0) }
    }
}

/// A histogram with fixed bounds, in the form Prometheus reads.
final class Histogram: Sendable {
    /// Upper bounds, ascending; above the last is counted in `+Inf` alone.
    let bounds: [Double]
    private let state: Mutex<(counts: [UInt64], sum: Double)>

    init(bounds: [Double]) {
        self.bounds = bounds
        state = Mutex((Array(repeating: 0, count: bounds.count + 1), 0))
    }

    /// Notes `count` observations of one value.
    func observe(_ value: Double, count: UInt64 = 1) {
        let index = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock {
            $0.counts[index] += count
            $0.sum += value * Double(count)
        }
    }

    /// Counts by bucket, not cumulative, and the sum of all values.
    var snapshot: (counts: [UInt64], sum: Double) { state.withLock { $0 } }
}
