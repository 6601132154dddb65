import GatewayCore
import GatewayDocuments
import GatewayEngine
import GatewayTelemetry
import WidgetModel

/// The history as lines of charts: a number or `nil` for each sample except the first.
struct OverviewSeries: Sendable {
    private let samples: [OverviewSample]
    /// The samples included.
    private let places: Range<Int>
    private let pointSamples: Int

    /// - Parameters:
    ///   - samples: The samples, oldest first.
    ///   - after: Only later samples are included, in milliseconds since 1970.
    ///   - pointSamples: The number of samples that a percentile covers.
    init(_ samples: [OverviewSample], after: Int64 = 0, pointSamples: Int) {
        (self.samples, self.pointSamples) = (samples, max(1, pointSamples))
        let first = samples.firstIndex { $0.at > after } ?? samples.count
        places = min(max(1, first), samples.count)..<samples.count
    }

    /// One number for each sample except the first, rounded to six decimal places: more are
    /// meaningless.
    private func line(
        back: Int = 1, _ value: (_ now: OverviewSample, _ before: OverviewSample) -> Double?
    ) -> [Double?] {
        places.map { place in
            value(samples[place], samples[max(0, place - back)]).map(rounded)
        }
    }

    private func rate(_ count: KeyPath<OverviewSample.Counts, UInt64>) -> [Double?] {
        line { now, before in
            let seconds = Double(max(1, now.at - before.at)) / 1000
            return Double(now.counts.since(before.counts)[keyPath: count]) / seconds
        }
    }

    private func percentiles(
        _ counts: (OverviewSample) -> HistogramCounts?
    ) -> Overview.Lines {
        func line(_ share: Double) -> [Double?] {
            self.line(back: pointSamples) { now, before in
                counts(now)?.since(counts(before)).percentile(share)
            }
        }
        var lines = Overview.Lines()
        (lines.p50, lines.p99) = (line(0.5), line(0.99))
        return lines
    }

    private func rounded(_ number: Double) -> Double {
        (number * 1_000_000).rounded() / 1_000_000
    }

    var document: Overview.Series {
        var series = Overview.Series()
        series.at = places.map { samples[$0].at }
        series.decided = percentiles { $0.decided }
        for channel in DeliveryChannel.allCases {
            if samples.last?.sent[channel] != nil {
                series.sent.members.append(
                    (channel.rawValue, percentiles { $0.sent[channel] }))
            }
            if samples.last?.confirmed[channel] != nil {
                series.confirmed.members.append(
                    (channel.rawValue, percentiles { $0.confirmed[channel] }))
            }
        }
        series.commit = percentiles { $0.commitSeconds }
        series.changes = rate(\.changes)
        series.deliveries = rate(\.deliveries)
        series.polls = rate(\.polls)
        series.pushesSent = rate(\.pushesSent)
        series.pushesFailed = rate(\.pushesFailed)
        series.streams = line { now, _ in Double(now.streams) }
        series.lagging = line { now, _ in Double(now.lagging) }
        series.clients = line { now, _ in Double(now.clients) }
        series.withheld = line { now, _ in now.standings.map { Double($0.withheld) } }
        return series
    }
}
