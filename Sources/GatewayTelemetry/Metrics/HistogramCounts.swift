/// The observations that a histogram counted: up to a moment, or between two.
package struct HistogramCounts: Sendable, Equatable {
    /// Upper bounds of the buckets, ascending; one more bucket has everything above.
    package let bounds: [Double]
    /// Observations by bucket, not cumulative; one more than `bounds`.
    package private(set) var counts: [UInt64]

    /// Nothing was counted.
    package init(bounds: [Double]) {
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count + 1)
    }

    /// Counts by bucket: missing `counts` are 0, excess ones are dropped.
    package init(bounds: [Double], counts: [UInt64]) {
        self.init(bounds: bounds)
        for place in self.counts.indices.prefix(counts.count) { self.counts[place] = counts[place] }
    }

    /// Counts of a page in Prometheus' text format: `cumulative` holds the number of observations
    /// up to each bound, infinity included.
    package init(cumulative: [Double: UInt64]) {
        let bounds = cumulative.keys.sorted()
        let counts = bounds.map { cumulative[$0] ?? 0 }
        self.init(
            bounds: bounds.filter(\.isFinite),
            counts: zip(counts, [0] + counts).map { $0 - min($0, $1) })
    }

    package var total: UInt64 { counts.reduce(0, &+) }

    /// Adds what another of the same bounds counted.
    package mutating func add(_ other: Self) {
        guard other.bounds == bounds else { return }
        for place in counts.indices { counts[place] &+= other.counts[place] }
    }

    /// Returns the counts since an earlier moment. Counts never go down, except by a restart.
    package func since(_ earlier: Self?) -> Self {
        guard let earlier, earlier.bounds == bounds else { return self }
        var difference = self
        for place in counts.indices {
            difference.counts[place] -= min(counts[place], earlier.counts[place])
        }
        return difference
    }

    /// Returns the value below which a `share` (0 to 1) of the observations lies, if those of a
    /// bucket are spread evenly; `nil` without observations. At most the highest bound: nothing is
    /// known above it.
    package func percentile(_ share: Double) -> Double? {
        let total = total
        guard total > 0 else { return nil }
        let rank = min(max(share, 0), 1) * Double(total)
        var below: UInt64 = 0
        for (place, bound) in bounds.enumerated() where counts[place] > 0 {
            let through = below + counts[place]
            if Double(through) >= rank {
                let start = place == 0 ? 0 : bounds[place - 1]
                return start + (bound - start) * (rank - Double(below)) / Double(counts[place])
            }
            below = through
        }
        return bounds.last
    }
}
