/// What a histogram counted: up to a moment, or between two.
struct HistogramCounts: Sendable, Equatable {
    /// Upper bounds of the buckets, ascending; one more bucket has everything above.
    let bounds: [Double]
    /// Observations by bucket, not cumulative; one more than `bounds`.
    private(set) var counts: [UInt64]

    /// Nothing was counted.
    init(bounds: [Double]) {
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count + 1)
    }

    /// - Parameter counts: Those missing count as 0, those too many not at all.
    init(bounds: [Double], counts: [UInt64]) {
        self.init(bounds: bounds)
        for place in self.counts.indices.prefix(counts.count) { self.counts[place] = counts[place] }
    }

    /// How many observations.
    var total: UInt64 { counts.reduce(0, &+) }

    /// Adds what another of the same bounds counted.
    mutating func add(_ other: Self) {
        guard other.bounds == bounds else { return }
        for place in counts.indices { counts[place] &+= other.counts[place] }
    }

    /// What was counted since an earlier moment. Counts never go down, but for a restart.
    func since(_ earlier: Self?) -> Self {
        guard let earlier, earlier.bounds == bounds else { return self }
        var difference = self
        for place in counts.indices {
            difference.counts[place] -= min(counts[place], earlier.counts[place])
        }
        return difference
    }

    /// The value below which so large a share of the observations lies, supposing that within a
    /// bucket they lie evenly; `nil` without observations. Above the highest bound nothing is known,
    /// and that bound is the answer.
    ///
    /// - Parameter share: From 0 to 1.
    func percentile(_ share: Double) -> Double? {
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
