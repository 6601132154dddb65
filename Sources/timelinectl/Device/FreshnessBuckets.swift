import TimelineClient

extension AdminConnection {
    private static let metric = "timeline_gateway_freshness_confirmed_seconds_bucket"

    /// The gateway's own histogram of changes to acknowledged rebuilds of clients with streams, all
    /// kinds together; `nil` when it cannot be had.
    func freshness() async -> FreshnessBuckets? {
        guard let text = try? await text("/metrics") else { return nil }
        var counts: [Double: Int] = [:]
        for line in text.split(separator: "\n") where line.hasPrefix(Self.metric + "{") {
            guard line.contains("channel=\"stream\""),
                let start = line.firstRange(of: "le=\"")?.upperBound,
                let end = line[start...].firstIndex(of: "\""),
                let count = line.split(separator: " ").last.flatMap({ Int($0) })
            else { continue }
            let bound = line[start..<end]
            let seconds = bound == "+Inf" ? .infinity : Double(bound) ?? .infinity
            counts[seconds, default: 0] += count
        }
        // A kind has no histogram before its first rebuild.
        return FreshnessBuckets(cumulative: counts)
    }
}

/// A histogram as Prometheus has it.
struct FreshnessBuckets: Sendable {
    /// How many samples are at most so many seconds.
    private(set) var cumulative: [Double: Int]

    /// The samples since another reading.
    func since(_ earlier: FreshnessBuckets) -> FreshnessBuckets {
        FreshnessBuckets(
            cumulative: cumulative.reduce(into: [:]) {
                $0[$1.key] = max(0, $1.value - (earlier.cumulative[$1.key] ?? 0))
            })
    }

    /// Samples.
    var count: Int { cumulative[.infinity] ?? 0 }

    /// The bucket that holds this quantile, in seconds; `nil` without samples.
    func bucket(ofQuantile share: Double) -> (above: Double, upTo: Double)? {
        let bounds = cumulative.keys.sorted()
        let wanted = max(1, Int((Double(count) * share).rounded(.up)))
        guard count > 0,
            let place = bounds.firstIndex(where: { cumulative[$0] ?? 0 >= wanted })
        else { return nil }
        return (place == 0 ? 0 : bounds[place - 1], bounds[place])
    }

    /// Whether a value lies in the bucket of this quantile or one beside it.
    func agrees(_ value: Double, onQuantile share: Double) -> Bool {
        let bounds = cumulative.keys.sorted()
        guard let bucket = bucket(ofQuantile: share),
            let theirs = bounds.firstIndex(of: bucket.upTo),
            let ours = bounds.firstIndex(where: { value <= $0 })
        else { return false }
        return abs(theirs - ours) <= 1
    }
}
