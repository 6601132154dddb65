/// Durations in buckets whose width is at most 1/64 of their value: what the longest takes, and
/// not how many there are, is what memory grows with.
package struct LatencyHistogram: Sendable {
    private static let stepsPerOctave = 64
    private static let stepBits = 6

    private var buckets: [UInt64] = []
    /// The number of durations recorded.
    package private(set) var count: UInt64 = 0

    /// Nothing is recorded.
    package init() {}

    /// Records a duration; a negative one counts as 0.
    package mutating func record(nanoseconds: Int64) {
        let bucket = Self.bucket(of: UInt64(max(0, nanoseconds)))
        if buckets.count <= bucket {
            buckets += [UInt64](repeating: 0, count: bucket + 1 - buckets.count)
        }
        buckets[bucket] += 1
        count += 1
    }

    /// Returns the duration that `fraction` (0 to 1) of all do not exceed, in nanoseconds: the
    /// middle of its bucket. `nil` when nothing was recorded.
    package func percentile(_ fraction: Double) -> Double? {
        let rank = max(1, (fraction * Double(count)).rounded(.up))
        var seen: UInt64 = 0
        for (bucket, size) in buckets.enumerated() where size > 0 {
            seen += size
            if Double(seen) >= rank { return Self.middle(of: bucket) }
        }
        return nil
    }

    private static func bucket(of value: UInt64) -> Int {
        let bits = UInt64.bitWidth - value.leadingZeroBitCount
        guard bits > stepBits + 1 else { return Int(value) }
        let shift = bits - stepBits - 1
        return shift * stepsPerOctave + Int(value >> UInt64(shift))
    }

    private static func middle(of bucket: Int) -> Double {
        guard bucket >= 2 * stepsPerOctave else { return Double(bucket) }
        let shift = bucket / stepsPerOctave - 1
        let width = Double(UInt64(1) << UInt64(shift))
        return Double(bucket - shift * stepsPerOctave) * width + (width - 1) / 2
    }
}
