import Foundation
import GatewayCore
import GatewayStorage
import OpenMetrics
import ServiceLifecycle
import Synchronization
import WidgetModel

/// Remembers how the gateway did in the last hour, and says how it does now.
///
/// A sample has about 2 KB, so that the hour has less than 2 MB.
final class OverviewDesk: Service {
    /// Seconds between two samples.
    static let step = 5
    /// An hour of samples.
    static let samplesMax = 3_600 / step
    /// Seconds that percentiles of now, and troubles, look back.
    static let recentSeconds = 300
    /// Seconds that a point of a freshness chart looks back: fewer changes make no line.
    static let pointSeconds = 30
    /// Minutes between two samples of kinds, and how many are kept.
    private static let kindSamplesMax = 61

    private struct State {
        var samples = Ring<OverviewSample>(countMax: OverviewDesk.samplesMax + 1)
        /// What was sent by kind, once a minute.
        var kinds = Ring<[String: HistogramCounts]>(countMax: OverviewDesk.kindSamplesMax)
    }

    let page: MetricsPage
    private let readiness: Readiness
    private let state = Mutex(State())

    init(_ page: MetricsPage, _ readiness: Readiness) {
        (self.page, self.readiness) = (page, readiness)
    }

    /// Takes samples until the gateway stops.
    func run() async throws {
        take(withKinds: true)
        try? await cancelWhenGracefulShutdown {
            for taken in 1... {
                try await Task.sleep(for: .seconds(Self.step))
                self.take(withKinds: taken % (60 / Self.step) == 0)
            }
        }
    }

    private func take(withKinds: Bool) {
        let sample = sample()
        let kinds = withKinds ? sentByKind : nil
        state.withLock { state in
            state.samples.append(sample)
            if let kinds { state.kinds.append(kinds) }
        }
    }

    private var sentByKind: [String: HistogramCounts] {
        page.metrics.registry.histograms(of: .freshnessSent, by: 1)
    }

    /// What was sent of each kind in the last minutes and in the last hour.
    func kinds() -> [String: (recent: HistogramCounts, hour: HistogramCounts)] {
        let (recent, hour) = state.withLock {
            ($0.kinds.before(Self.recentSeconds / 60), $0.kinds.before(Self.kindSamplesMax))
        }
        return sentByKind.reduce(into: [:]) { kinds, entry in
            kinds[entry.key] = (
                entry.value.since(recent?[entry.key]), entry.value.since(hour?[entry.key])
            )
        }
    }

    // MARK: A moment

    /// What fails now.
    var verdict: Health.Verdict {
        readiness.verdict(
            page.sequencer, certificateEnds: Int64(page.certificateEnds().timeIntervalSince1970),
            wallSeconds: page.sequencer.desk.wallSeconds())
    }

    private func sample() -> OverviewSample {
        let registry = page.metrics.registry
        func whole(_ family: MetricFamily) -> HistogramCounts {
            registry.histograms(of: family)[""] ?? HistogramCounts(bounds: [])
        }
        func byChannel(_ family: MetricFamily) -> [DeliveryChannel: HistogramCounts] {
            registry.histograms(of: family, by: 0).reduce(into: [:]) { channels, entry in
                if let channel = DeliveryChannel(rawValue: entry.key) {
                    channels[channel] = entry.value
                }
            }
        }
        let figures = page.sequencer.store.figures
        var sample = OverviewSample(
            at: page.sequencer.desk.wallMilliseconds(), decided: whole(.freshnessDecided),
            commitSeconds: whole(.commitSeconds))
        sample.sent = byChannel(.freshnessSent)
        sample.confirmed = byChannel(.freshnessConfirmed)
        sample.counts = counts(registry)
        sample.counts.commits = UInt64(max(0, figures.commits))
        sample.counts.commitFailures = UInt64(max(0, figures.failedCommits))
        sample.counts.writesRefused = UInt64(max(0, figures.refusedJobs))
        sample.clients = page.sequencer.registry.count
        sample.streams = page.loops.openStreams
        sample.lagging = page.loops.all.reduce(0) { $0 + $1.figures.lagging }
        sample.standings = page.sequencer.push?.standings
        (sample.head, sample.floor) = (figures.head, figures.floor)
        sample.applied = page.loops.all.map(\.position).min() ?? 0
        sample.waitingWrites = figures.waitingJobs
        (sample.databaseBytes, sample.walBytes) = (figures.databaseBytes, figures.walBytes)
        return sample
    }

    private func counts(_ registry: MetricsRegistry) -> OverviewSample.Counts {
        var counts = OverviewSample.Counts()
        counts.changes = registry.count(of: .changesAccepted)
        counts.unmatched = registry.count(of: .changesUnmatched)
        counts.broad = registry.count(of: .changesBroad)
        counts.deliveries = registry.count(of: .deliveries)
        counts.polls = registry.count(of: .polls)
        counts.acknowledgements = registry.count(of: .acknowledgements)
        counts.rebuildFailures = registry.count(of: .rebuildFailures)
        for reading in registry.readings(of: .pushes) {
            guard case .count(let count) = reading.value, reading.labels.count > 1 else { continue }
            if reading.labels[1] == "sent" {
                counts.pushesSent &+= count
            } else {
                counts.pushesFailed &+= count
            }
        }
        counts.cursorsAhead = page.sequencer.desk.ahead.value
        return counts
    }

    // MARK: What is said of it

    /// How the gateway does now.
    func overview() -> JSONValue {
        let now = sample()
        let (recent, last) = state.withLock {
            ($0.samples.before(Self.recentSeconds / Self.step - 1), $0.samples.before(1))
        }
        return json(now, since: recent, last: last)
    }

    /// How the gateway does now, and how it did in the last hour, a number for each step.
    ///
    /// - Parameter after: In milliseconds since 1970: only what came later.
    func overviewWithPast(after: Int64) -> JSONValue {
        guard var object = overview().objectValue else { return .null }
        object["series"] =
            OverviewSeries(
                state.withLock { $0.samples.elements }, after: after,
                pointSamples: Self.pointSeconds / Self.step
            ).json
        return .object(object)
    }

    private func json(
        _ now: OverviewSample, since recent: OverviewSample?, last: OverviewSample?
    ) -> JSONValue {
        let verdict = verdict
        let counts = now.counts.since(recent?.counts ?? OverviewSample.Counts())
        let sent = now.sent.reduce(into: [:]) { $0[$1.key] = $1.value.since(recent?.sent[$1.key]) }
        let confirmed = now.confirmed.reduce(into: [:]) {
            $0[$1.key] = $1.value.since(recent?.confirmed[$1.key])
        }
        let ends = Int64(page.certificateEnds().timeIntervalSince1970)
        let look = TroubleLook(
            verdict: verdict, certificateSeconds: ends - now.at / 1000,
            pushCertificates: page.pushCertificateEnds().mapValues {
                Int64($0.timeIntervalSince1970) - now.at / 1000
            }, now: now, recent: counts, sent: sent, windows: windows)
        var object: JSONObject = [
            "time": .string(timestamp(now.at)),
            "recentSeconds": .integer(
                min(Int64(Self.recentSeconds), max(1, (now.at - (recent?.at ?? now.at)) / 1000))),
            "ready": .bool(verdict.notReady.isEmpty),
            "troubles": .array(
                look.troubles.map {
                    [
                        "level": .string($0.level.rawValue), "what": .string($0.what),
                        "remedy": .string($0.remedy),
                    ]
                }),
            "decided": now.decided.since(recent?.decided).json,
            "sent": Self.json(sent), "confirmed": Self.json(confirmed),
            "commit": now.commitSeconds.since(recent?.commitSeconds).json,
            "recent": counts.json, "rates": now.rates(since: last),
            "clients": .integer(Int64(now.clients)), "streams": .integer(Int64(now.streams)),
            "lagging": .integer(Int64(now.lagging)),
            "certificateEnds": .string(timestamp(ends * 1000)),
            "log": [
                "head": .integer(Int64(clamping: now.head)),
                "floor": .integer(Int64(clamping: now.floor)),
                "applied": .integer(Int64(clamping: now.applied)),
                "waitingWrites": .integer(Int64(now.waitingWrites)),
                "databaseBytes": .integer(now.databaseBytes), "walBytes": .integer(now.walBytes),
            ],
        ]
        if let standings = now.standings { object["standings"] = standings.json }
        return .object(object)
    }

    private static func json(_ channels: [DeliveryChannel: HistogramCounts]) -> JSONValue {
        var object = JSONObject()
        for channel in DeliveryChannel.allCases {
            if let counts = channels[channel] { object[channel.rawValue] = counts.json }
        }
        return .object(object)
    }

    private var windows: [TroubleLook.Window] {
        let head = page.sequencer.store.head
        return Dictionary(grouping: page.loops.all.flatMap(\.figures.windows), by: \.app)
            .sorted { $0.key < $1.key }.map { app, windows in
                let floor = windows.map(\.floor).max() ?? 0
                return TroubleLook.Window(
                    app: app, keys: windows.map(\.keys).max() ?? 0,
                    keysMax: windows.map(\.keysMax).max() ?? 0, distance: head - min(head, floor))
            }
    }
}

extension HistogramCounts {
    /// How many there were, and in seconds what half and a hundredth of them exceed.
    var json: JSONValue {
        [
            "count": .integer(Int64(clamping: total)),
            "p50": percentile(0.5).map(JSONValue.number) ?? .null,
            "p99": percentile(0.99).map(JSONValue.number) ?? .null,
        ]
    }
}

extension OverviewSample.Counts {
    fileprivate var json: JSONValue {
        func number(_ count: UInt64) -> JSONValue { .integer(Int64(clamping: count)) }
        return [
            "changes": number(changes), "unmatched": number(unmatched), "broad": number(broad),
            "deliveries": number(deliveries), "polls": number(polls),
            "acknowledgements": number(acknowledgements),
            "rebuildFailures": number(rebuildFailures), "pushesSent": number(pushesSent),
            "pushesFailed": number(pushesFailed), "commits": number(commits),
            "commitFailures": number(commitFailures), "writesRefused": number(writesRefused),
            "cursorsAhead": number(cursorsAhead),
        ]
    }
}

extension OverviewSample {
    /// What came since an earlier moment, for each second.
    fileprivate func rates(since earlier: Self?) -> JSONValue {
        let seconds = Double(max(1_000, at - (earlier?.at ?? at))) / 1000
        let counts = counts.since(earlier?.counts ?? counts)
        func rate(_ count: UInt64) -> JSONValue { .number(Double(count) / seconds) }
        return [
            "changes": rate(counts.changes), "deliveries": rate(counts.deliveries),
            "polls": rate(counts.polls), "acknowledgements": rate(counts.acknowledgements),
            "pushes": rate(counts.pushesSent &+ counts.pushesFailed),
        ]
    }
}

extension PushDesk.Census {
    fileprivate var json: JSONValue {
        func number(_ count: Int) -> JSONValue { .integer(Int64(count)) }
        return [
            "confirmed": number(confirmed), "told": number(told), "underWay": number(underWay),
            "withheld": number(withheld), "waiting": number(waiting),
            "unreachable": number(unreachable),
        ]
    }
}
