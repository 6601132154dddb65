import GatewayTelemetry

extension AdminConnection {
    private static let metric = "timeline_gateway_freshness_confirmed_seconds_bucket"

    /// The gateway's own histogram of the times from a change to its acknowledged rebuild, for
    /// clients with streams, all kinds together; `nil` if it is unavailable.
    func freshness() async -> HistogramCounts? {
        guard let text = try? await text("/metrics") else { return nil }
        var counts: [Double: UInt64] = [:]
        for line in text.split(separator: "\n") where line.hasPrefix(Self.metric + "{") {
            guard line.contains("channel=\"stream\""),
                let start = line.firstRange(of: "le=\"")?.upperBound,
                let end = line[start...].firstIndex(of: "\""),
                let count = line.split(separator: " ").last.flatMap({ UInt64($0) })
            else { continue }
            let bound = line[start..<end]
            let seconds = bound == "+Inf" ? .infinity : Double(bound) ?? .infinity
            counts[seconds, default: 0] += count
        }
        // A kind has no histogram before its first rebuild.
        return HistogramCounts(cumulative: counts)
    }
}

extension HistogramCounts {
    /// The bounds, in seconds, of the bucket that holds this quantile; `nil` without samples.
    func bucket(ofQuantile share: Double) -> (above: Double, upTo: Double)? {
        place(ofQuantile: share).map { place in
            (place == 0 ? 0 : bounds[place - 1], place < bounds.count ? bounds[place] : .infinity)
        }
    }

    /// Whether a value lies in the bucket of this quantile or in one next to it.
    func agrees(_ value: Double, onQuantile share: Double) -> Bool {
        guard let theirs = place(ofQuantile: share) else { return false }
        let ours = bounds.firstIndex { value <= $0 } ?? bounds.count
        return abs(theirs - ours) <= 1
    }

    private func place(ofQuantile share: Double) -> Int? {
        var left = max(1, Int((Double(total) * share).rounded(.up)))
        return counts.firstIndex { count in
            left -= Int(count)
            return left <= 0
        }
    }
}

extension LatencyHistogram {
    /// Records a duration; a negative one counts as zero.
    mutating func record(_ duration: Duration) {
        record(nanoseconds: Int64(duration / .nanoseconds(1)))
    }

    /// Returns the seconds that a share of `fraction` (0 to 1) does not exceed; `nil` without
    /// samples.
    func seconds(_ fraction: Double) -> Double? { percentile(fraction).map { $0 / 1e9 } }
}
