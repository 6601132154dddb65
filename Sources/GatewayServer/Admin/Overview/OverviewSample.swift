import GatewayCore
import GatewayDocuments
import GatewayEngine
import GatewayTelemetry

/// The status at one moment: counts since the start, and present values.
struct OverviewSample: Sendable {
    typealias Counts = Overview.Counts

    /// The time, in milliseconds since 1970.
    var at: Int64
    var counts = Counts()
    /// The times from a change to its decision.
    var decided: HistogramCounts
    /// The times from a change to its notification, and to the report of its rebuild, by channel.
    var sent: [DeliveryChannel: HistogramCounts] = [:]
    var confirmed: [DeliveryChannel: HistogramCounts] = [:]
    var commitSeconds: HistogramCounts
    var clients = 0
    var streams = 0
    var lagging = 0
    var connectionWaits = 0
    var standings: PushScheduler.StatusCounts?
    var head: UInt64 = 0
    var floor: UInt64 = 0
    /// The last entry that every event loop has applied.
    var applied: UInt64 = 0
    var waitingWrites = 0
    var databaseBytes: Int64 = 0
    var walBytes: Int64 = 0
}

extension Overview.Counts {
    private static var all: [WritableKeyPath<Self, UInt64>] {
        [
            \.changes, \.unmatched, \.broad, \.deliveries, \.polls, \.acknowledgements,
            \.rebuildFailures, \.pushesSent, \.pushesFailed, \.commits, \.commitFailures,
            \.writesRefused, \.cursorsAhead,
        ]
    }

    /// Returns the increase since an earlier moment.
    func since(_ earlier: Self) -> Self {
        var counts = self
        for path in Self.all {
            counts[keyPath: path] -= min(counts[keyPath: path], earlier[keyPath: path])
        }
        return counts
    }
}

extension MetricsRegistry {
    /// The count of a counter over all labels.
    func count(of family: MetricFamily) -> UInt64 { counts(of: family)[""] ?? 0 }

    /// The counts of a counter, as ``histograms(of:by:)`` has those of a histogram.
    func counts(of family: MetricFamily, by label: Int? = nil) -> [String: UInt64] {
        readings(of: family).reduce(into: [:]) { counts, reading in
            guard case .count(let count) = reading.value else { return }
            counts[label.map { reading.labels[$0] } ?? "", default: 0] &+= count
        }
    }

    /// The counts of a histogram by the value of a label, or over all labels.
    ///
    /// - Parameter label: The index of the label in the family's labels; `nil` for all labels
    ///   together, under the key "".
    func histograms(
        of family: MetricFamily, by label: Int? = nil
    ) -> [String: HistogramCounts] {
        var byValue: [String: HistogramCounts] = [:]
        for reading in readings(of: family) {
            guard case .histogram(let bounds, let counts) = reading.value else { continue }
            let value =
                label.flatMap { reading.labels.indices.contains($0) ? $0 : nil }
                .map { reading.labels[$0] } ?? ""
            byValue[value, default: HistogramCounts(bounds: bounds)].add(
                HistogramCounts(bounds: bounds, counts: counts))
        }
        return byValue
    }
}
