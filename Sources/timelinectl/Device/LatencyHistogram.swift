import Foundation

/// Durations in steps of two percent, so that a week of samples takes as much room as a second's.
struct LatencyHistogram: Sendable {
    private static let step = 1.02
    /// Up to 2.5 hours.
    private static let stepsMax = 1_158

    private var counts: [Int] = []
    /// Samples.
    private(set) var count = 0

    /// Notes a sample; a negative one counts as none at all.
    mutating func add(_ duration: Duration) {
        let microseconds = max(1, duration / .microseconds(1))
        let place = min(Self.stepsMax, Int(log(microseconds) / log(Self.step)))
        if counts.count <= place {
            counts += [Int](repeating: 0, count: place + 1 - counts.count)
        }
        counts[place] += 1
        count += 1
    }

    /// Seconds that this share of the samples took at most; `nil` without any.
    func quantile(_ share: Double) -> Double? {
        guard count > 0 else { return nil }
        let wanted = max(1, Int((Double(count) * share).rounded(.up)))
        var sum = 0
        for (place, count) in counts.enumerated() {
            sum += count
            if sum >= wanted { return pow(Self.step, Double(place + 1)) / 1_000_000 }
        }
        return nil
    }
}
