import GatewayCore
import WidgetModel

/// The past as lines of charts: for each sample but the first a number, or none.
struct OverviewSeries: Sendable {
    private let samples: [OverviewSample]
    /// The samples that are said.
    private let places: Range<Int>
    private let pointSamples: Int

    /// - Parameters:
    ///   - samples: The oldest first.
    ///   - after: In milliseconds since 1970: only what came later is said.
    ///   - pointSamples: How many samples a percentile looks back.
    init(_ samples: [OverviewSample], after: Int64 = 0, pointSamples: Int) {
        (self.samples, self.pointSamples) = (samples, max(1, pointSamples))
        let first = samples.firstIndex { $0.at > after } ?? samples.count
        places = min(max(1, first), samples.count)..<samples.count
    }

    /// One number for each sample but the first; digits beyond six tell nothing.
    private func line(
        back: Int = 1, _ value: (_ now: OverviewSample, _ before: OverviewSample) -> Double?
    ) -> JSONValue {
        .array(
            places.map { place in
                value(samples[place], samples[max(0, place - back)]).map { .number(rounded($0)) }
                    ?? .null
            })
    }

    private func rate(_ count: KeyPath<OverviewSample.Counts, UInt64>) -> JSONValue {
        line { now, before in
            let seconds = Double(max(1, now.at - before.at)) / 1000
            return Double(now.counts.since(before.counts)[keyPath: count]) / seconds
        }
    }

    private func percentiles(
        _ counts: (OverviewSample) -> HistogramCounts?
    ) -> JSONValue {
        func line(_ share: Double) -> JSONValue {
            self.line(back: pointSamples) { now, before in
                counts(now)?.since(counts(before)).percentile(share)
            }
        }
        return ["p50": line(0.5), "p99": line(0.99)]
    }

    private func rounded(_ number: Double) -> Double {
        (number * 1_000_000).rounded() / 1_000_000
    }

    var json: JSONValue {
        var sent = JSONObject()
        var confirmed = JSONObject()
        for channel in DeliveryChannel.allCases {
            if samples.last?.sent[channel] != nil {
                sent[channel.rawValue] = percentiles { $0.sent[channel] }
            }
            if samples.last?.confirmed[channel] != nil {
                confirmed[channel.rawValue] = percentiles { $0.confirmed[channel] }
            }
        }
        return [
            "at": .array(places.map { .integer(samples[$0].at) }),
            "decided": percentiles { $0.decided }, "sent": .object(sent),
            "confirmed": .object(confirmed), "commit": percentiles { $0.commitSeconds },
            "changes": rate(\.changes), "deliveries": rate(\.deliveries), "polls": rate(\.polls),
            "pushesSent": rate(\.pushesSent), "pushesFailed": rate(\.pushesFailed),
            "streams": line { now, _ in Double(now.streams) },
            "lagging": line { now, _ in Double(now.lagging) },
            "clients": line { now, _ in Double(now.clients) },
            "withheld": line { now, _ in now.standings.map { Double($0.withheld) } },
        ]
    }
}
