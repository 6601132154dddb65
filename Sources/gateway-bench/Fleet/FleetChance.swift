import Glibc
import WidgetModel

/// Chance, the same for the same seed.
struct FleetChance {
    private var generator: SplitMix64

    /// Creates a source.
    init(seed: UInt64) { generator = SplitMix64(seed: seed) }

    /// Returns a number from 0 to below 1.
    mutating func unit() -> Double { Double(generator.next() >> 11) * 0x1p-53 }

    /// Returns an index below `count`.
    mutating func index(below count: Int) -> Int { min(count - 1, Int(unit() * Double(count))) }

    /// Returns the time until the next of events that come independently at a rate.
    mutating func interval(rate: Double) -> Double { -log(1 - unit()) / rate }

    /// Returns a factor between 1 - `deviation` and 1 + `deviation`.
    mutating func factor(deviation: Double) -> Double { 1 + deviation * (2 * unit() - 1) }
}

/// Measurements of one kind, for their percentiles.
struct FleetDistribution {
    private(set) var sorted: [Double]

    /// Sorts measurements.
    init(_ values: [Double]) { sorted = values.sorted() }

    /// Returns the measurement that a part of them does not exceed; 0 without any.
    func percentile(_ part: Double) -> Double {
        guard let last = sorted.last else { return 0 }
        let index = Int(part * Double(sorted.count))
        return index < sorted.count ? sorted[index] : last
    }
}
