import CoreMetrics
import Synchronization

/// The value of a counter for one set of labels.
final class CounterSeries: CounterHandler {
    private let count = Atomic<UInt64>(0)

    /// Adds an amount; a negative one is ignored.
    func increment(by amount: Int64) {
        guard amount > 0 else { return }
        count.wrappingAdd(UInt64(amount), ordering: .relaxed)
    }

    func reset() { count.store(0, ordering: .relaxed) }

    var value: UInt64 { count.load(ordering: .relaxed) }
}

/// The value of a gauge for one set of labels.
final class GaugeSeries: MeterHandler {
    private let state = Mutex(0.0)

    func set(_ value: Int64) { state.withLock { $0 = Double(value) } }
    func set(_ value: Double) { state.withLock { $0 = value } }
    func increment(by amount: Double) { state.withLock { $0 += amount } }
    func decrement(by amount: Double) { state.withLock { $0 -= amount } }

    var value: Double { state.withLock { $0 } }
}

/// The buckets of a histogram for one set of labels.
final class HistogramSeries: RecorderHandler, TimerHandler {
    /// The counts by bucket, not cumulative; the last is for all values above the highest bound.
    struct Value: Sendable {
        var counts: [UInt64]
        var sum = 0.0
    }

    let bounds: [Double]
    private let state: Mutex<Value>

    init(bounds: [Double]) {
        self.bounds = bounds
        state = Mutex(Value(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    func record(_ value: Int64) { record(Double(value)) }

    /// Counts an observation; a value that is not finite is ignored.
    func record(_ value: Double) {
        guard value.isFinite else { return }
        let bucket = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock {
            $0.counts[bucket] += 1
            $0.sum += value
        }
    }

    /// Records a duration; the page shows it in seconds.
    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }

    var value: Value { state.withLock { $0 } }
}
