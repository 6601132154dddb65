import Foundation
import GatewayCore
import GatewayDocuments
import GatewayEngine
import GatewayStorage
import GatewayTLS
import GatewayTelemetry
import ServiceLifecycle
import Synchronization
import WidgetModel

/// Samples the gateway's status, and keeps the samples of the last hour: about 2 kB each, less than
/// 2 MB.
package final class OverviewSampler: Service {
    /// The interval between two samples, in seconds.
    static let step = 5
    /// The number of samples in an hour.
    static let samplesMax = 3_600 / step
    /// The period of current percentiles and problems, in seconds.
    static let recentSeconds = 300
    /// The period of one point in a freshness chart, in seconds: fewer changes make no line.
    static let pointSeconds = 30
    /// The number of samples by kind that are stored, one per minute.
    private static let kindSamplesMax = 61

    private struct State {
        var samples = Ring<OverviewSample>(countMax: OverviewSampler.samplesMax + 1)
        /// The times from a change to its notification by kind, one sample per minute.
        var kinds = Ring<[String: HistogramCounts]>(countMax: OverviewSampler.kindSamplesMax)
    }

    package let page: MetricsPage
    private let readiness: Readiness
    private let configurationFaults: @Sendable () -> Faults?
    private let state = Mutex(State())

    /// - Parameter configurationFaults: Returns the faults of a changed configuration that was
    ///   rejected; `nil` if the last one was applied.
    package init(
        _ page: MetricsPage, _ readiness: Readiness,
        configurationFaults: @escaping @Sendable () -> Faults? = { nil }
    ) {
        (self.page, self.readiness) = (page, readiness)
        self.configurationFaults = configurationFaults
    }

    /// Takes samples until the gateway stops.
    package func run() async throws {
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

    /// The times from a change to its notification by kind, in the last minutes and in the last
    /// hour.
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

    // MARK: Samples

    /// The parts that fail now.
    var verdict: Health.Verdict {
        readiness.verdict(
            of: page.engine,
            certificateEnds: Int64(page.certificateEnds().timeIntervalSince1970))
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
        let figures = page.engine.store.figures
        var sample = OverviewSample(
            at: page.engine.clock.wallMilliseconds(), decided: whole(.freshnessDecided),
            commitSeconds: whole(.commitSeconds))
        sample.sent = byChannel(.freshnessSent)
        sample.confirmed = byChannel(.freshnessConfirmed)
        sample.counts = counts(registry)
        sample.counts.commits = UInt64(max(0, figures.commits))
        sample.counts.commitFailures = UInt64(max(0, figures.failedCommits))
        sample.counts.writesRefused = UInt64(max(0, figures.refusedJobs))
        sample.clients = page.engine.registry.count
        sample.streams = page.engine.loops.openStreams
        sample.lagging = page.engine.loops.all.reduce(0) { $0 + $1.figures.lagging }
        sample.connectionWaits = page.connections.waits
        sample.standings = page.engine.push?.standings
        (sample.head, sample.floor) = (figures.head, figures.floor)
        sample.applied = page.engine.loops.all.map(\.position).min() ?? 0
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
        let pushes = registry.counts(of: .pushes, by: 1)
        counts.pushesSent = pushes["sent"] ?? 0
        let skipped = pushes["skipped"] ?? 0
        counts.pushesFailed = pushes.values.reduce(0, &+) &- counts.pushesSent &- skipped
        counts.cursorsAhead = page.engine.cursors.aheadCount
        return counts
    }

    // MARK: Documents

    /// The current status.
    func overview() -> Overview {
        let now = sample()
        let (recent, last) = state.withLock {
            ($0.samples.before(Self.recentSeconds / Self.step - 1), $0.samples.before(1))
        }
        return document(now, since: recent, last: last)
    }

    /// The current status, and one number for each step of the last hour after `after`, in
    /// milliseconds since 1970.
    func overviewWithPast(after: Int64) -> Overview {
        var overview = overview()
        overview.series =
            OverviewSeries(
                state.withLock { $0.samples.elements }, after: after,
                pointSamples: Self.pointSeconds / Self.step
            ).document
        return overview
    }

    private func document(
        _ now: OverviewSample, since recent: OverviewSample?, last: OverviewSample?
    ) -> Overview {
        let verdict = verdict
        let counts = now.counts.since(recent?.counts ?? OverviewSample.Counts())
        let sent = now.sent.reduce(into: [:]) { $0[$1.key] = $1.value.since(recent?.sent[$1.key]) }
        let confirmed = now.confirmed.reduce(into: [:]) {
            $0[$1.key] = $1.value.since(recent?.confirmed[$1.key])
        }
        let ends = Int64(page.certificateEnds().timeIntervalSince1970)
        var look = HealthSnapshot(
            verdict: verdict, certificateSeconds: ends - now.at / 1000,
            pushCertificates: page.pushCertificateEnds().mapValues {
                Int64($0.timeIntervalSince1970) - now.at / 1000
            }, now: now, recent: counts, sent: sent, windows: page.windows)
        look.configurationFaults = configurationFaults()
        look.cluster = page.engine.leader?.state
        look.connectionWaits = now.connectionWaits - (recent?.connectionWaits ?? 0)
        var overview = Overview()
        overview.time = timestamp(now.at)
        overview.recentSeconds = min(
            Int64(Self.recentSeconds), max(1, (now.at - (recent?.at ?? now.at)) / 1000))
        overview.ready = verdict.notReady.isEmpty
        overview.troubles = look.troubles.map {
            var trouble = Overview.HealthIssue()
            (trouble.level, trouble.what) = ($0.level.rawValue, $0.what)
            (trouble.remedy, trouble.page) = ($0.remedy, $0.page)
            return trouble
        }
        overview.decided = now.decided.since(recent?.decided).quantiles
        overview.sent = Self.quantiles(sent)
        overview.confirmed = Self.quantiles(confirmed)
        overview.commit = now.commitSeconds.since(recent?.commitSeconds).quantiles
        overview.recent = counts
        overview.rates = now.rates(since: last)
        (overview.clients, overview.streams) = (now.clients, now.streams)
        overview.lagging = now.lagging
        overview.certificateEnds = timestamp(ends * 1000)
        overview.log.head = now.head
        overview.log.floor = now.floor
        overview.log.applied = now.applied
        overview.log.waitingWrites = now.waitingWrites
        overview.log.databaseBytes = now.databaseBytes
        overview.log.walBytes = now.walBytes
        overview.cluster = page.engine.leader.map { leader in
            var cluster = Overview.Cluster()
            let state = leader.state
            (cluster.leads, cluster.leader) = (leader.isHere, state.leader)
            cluster.generation = state.generation
            return cluster
        }
        overview.standings = now.standings.map(\.document)
        return overview
    }

    private static func quantiles(
        _ channels: [DeliveryChannel: HistogramCounts]
    ) -> JSONMap<Quantiles> {
        JSONMap(
            DeliveryChannel.allCases.compactMap { channel in
                channels[channel].map { (name: channel.rawValue, value: $0.quantiles) }
            })
    }
}

extension HistogramCounts {
    /// The number of observations, their median and their 99th percentile, in seconds.
    var quantiles: Quantiles {
        var quantiles = Quantiles()
        quantiles.count = total
        (quantiles.p50, quantiles.p99) = (percentile(0.5), percentile(0.99))
        return quantiles
    }
}

extension OverviewSample {
    /// Returns the rates since an earlier sample, per second.
    fileprivate func rates(since earlier: Self?) -> Overview.Rates {
        let seconds = Double(max(1_000, at - (earlier?.at ?? at))) / 1000
        let counts = counts.since(earlier?.counts ?? counts)
        func rate(_ count: UInt64) -> Double { Double(count) / seconds }
        var rates = Overview.Rates()
        rates.changes = rate(counts.changes)
        rates.deliveries = rate(counts.deliveries)
        rates.polls = rate(counts.polls)
        rates.acknowledgements = rate(counts.acknowledgements)
        rates.pushes = rate(counts.pushesSent &+ counts.pushesFailed)
        return rates
    }
}

extension PushScheduler.StatusCounts {
    fileprivate var document: Overview.PushStates {
        var standings = Overview.PushStates()
        (standings.confirmed, standings.told) = (confirmed, told)
        (standings.underWay, standings.withheld) = (underWay, withheld)
        (standings.waiting, standings.unreachable) = (waiting, unreachable)
        return standings
    }
}
