import Foundation
import GatewayCore
import GatewayEngine
import GatewayStorage
import GatewayTLS
import GatewayTelemetry

/// The page of metrics: the counters, and values read from where they are kept.
package struct MetricsPage: Sendable {
    let engine: Engine
    let metrics: GatewayMetrics
    let signer: NotificationSigner
    let keys: KeyService
    let tlsCounters: TLSCounters
    let connections: ConnectionLimit
    let certificateEnds: @Sendable () -> Date
    /// The expiry of the certificates that identify apps to APNs.
    let pushCertificateEnds: @Sendable () -> [String: Date]
    let unconfirmed: StalenessScanner
    let requestLimits: RequestLimits
    /// `nil` where nothing is traced.
    let spans: @Sendable () -> SpanBatcher.Counts?

    /// Returns the page with the present values.
    func text(_ format: ExpositionFormat) async -> String {
        // A gateway without pushes must not wait for its database here.
        let tokens = engine.push == nil ? [] : try? await engine.store.providerTokens()
        return metrics.registry.page(format) { samples in
            streams(&samples)
            log(&samples)
            usage(&samples)
            versions(&samples)
            unconfirmed(&samples)
            pushes(&samples, tokens ?? [])
            tls(&samples)
            spans(&samples)
            process(&samples)
        }
    }

    private func streams(_ samples: inout Samples) {
        let figures = engine.loops.all.map(\.figures)
        samples.gauge(.clients, is: Double(engine.registry.count))
        samples.gauge(.streams, is: Double(engine.loops.openStreams))
        samples.gauge(.streamsLagging, is: Double(figures.reduce(0) { $0 + $1.lagging }))
        samples.count(.collapsed, is: figures.reduce(0) { $0 &+ $1.collapsed })
        samples.count(.signatures, is: signer.signatures.value)
        samples.count(.cursorsAhead, is: engine.cursors.aheadCount)
    }

    private func log(_ samples: inout Samples) {
        let figures = engine.store.figures
        samples.gauge(.logHead, is: Double(figures.head))
        samples.gauge(.logFloor, is: Double(figures.floor))
        samples.gauge(.shardPosition, is: Double(engine.loops.all.map(\.position).min() ?? 0))
        samples.count(.commitTotal, is: UInt64(max(0, figures.commits)))
        samples.count(.commitFailures, is: UInt64(max(0, figures.failedCommits)))
        samples.count(.jobsRefused, is: UInt64(max(0, figures.refusedJobs)))
        samples.gauge(.jobsWaiting, is: Double(figures.waitingJobs))
        samples.gauge(.requestBytesInWork, is: Double(requestLimits.bytesInWork))
        samples.gauge(.databaseBytes, is: Double(figures.databaseBytes))
        samples.gauge(.walBytes, is: Double(figures.walBytes))
        samples.gauge(.leads, is: engine.leader?.isHere ?? true ? 1 : 0)
        if let state = engine.leader?.state {
            samples.gauge(.leaderGeneration, is: Double(state.generation))
            samples.gauge(.leaderReached, is: state.silence == nil ? 1 : 0)
        }
    }

    /// Samples the registrations and log bytes of each app, largest first.
    private func usage(_ samples: inout Samples) {
        let usage = engine.store.usage
        for (app, usage) in usage.apps(byMost: \.clients) {
            samples.gauge(.appClients, app, is: Double(usage.clients))
        }
        for (app, usage) in usage.apps(byMost: \.logBytes) {
            samples.gauge(.appLogBytes, app, is: Double(usage.logBytes))
        }
    }

    /// For each app, the fullest window of versions among the event loops.
    var windows: [HealthSnapshot.Window] {
        let head = engine.store.head
        return Dictionary(grouping: engine.loops.all.flatMap(\.figures.windows), by: \.app)
            .sorted { $0.key < $1.key }.map { app, windows in
                let floor = windows.map(\.floor).max() ?? 0
                return HealthSnapshot.Window(
                    app: app, keys: windows.map(\.keys).max() ?? 0,
                    keysMax: windows.map(\.keysMax).max() ?? 0, distance: head - min(head, floor))
            }
    }

    private func versions(_ samples: inout Samples) {
        for window in windows {
            samples.gauge(.versionKeys, window.app, is: Double(window.keys))
            samples.gauge(.versionKeysMax, window.app, is: Double(window.keysMax))
            samples.gauge(.versionDistance, window.app, is: Double(window.distance))
        }
    }

    private func unconfirmed(_ samples: inout Samples) {
        let now = engine.clock.wallMilliseconds()
        func age(_ time: Int64?) -> Double { time.map { Double(max(0, now - $0)) / 1000 } ?? 0 }
        for (app, oldest) in unconfirmed.oldest.sorted(by: { $0.key < $1.key }) {
            samples.gauge(.oldestUnconfirmed, app, "connected", is: age(oldest.connected))
            samples.gauge(.oldestUnconfirmed, app, "away", is: age(oldest.away))
        }
    }

    private func pushes(_ samples: inout Samples, _ tokens: [ProviderTokenRow]) {
        guard let standings = engine.push?.standings else { return }
        for (state, count) in [
            ("confirmed", standings.confirmed), ("told", standings.told),
            ("under_way", standings.underWay), ("withheld", standings.withheld),
            ("waiting", standings.waiting), ("refused", standings.refused),
            ("unreachable", standings.unreachable),
        ] {
            samples.gauge(.pushStandings, state, is: Double(count))
        }
        let now = engine.clock.wallSeconds()
        for token in tokens {
            samples.gauge(
                .providerTokenAge, token.issuer, is: Double(max(0, now - token.issuedAt)))
        }
    }

    private func tls(_ samples: inout Samples) {
        let counts = tlsCounters.snapshot()
        samples.count(.handshakes, "full", is: UInt64(max(0, counts.handshakesFull)))
        samples.count(.handshakes, "resumed", is: UInt64(max(0, counts.handshakesResumed)))
        let failed = counts.handshakesFailed.sorted { $0.key.rawValue < $1.key.rawValue }
        for (reason, count) in failed {
            samples.count(.handshakesFailed, reason.rawValue, is: UInt64(max(0, count)))
        }
        samples.gauge(.connections, is: Double(connections.taken))
        for reason in ConnectionRefusal.allCases {
            let count = counts.connectionsRefused[reason] ?? 0
            samples.count(.connectionsRefused, reason.rawValue, is: UInt64(max(0, count)))
        }
        let ended = counts.connectionsEnded.sorted { $0.key.rawValue < $1.key.rawValue }
        for (reason, count) in ended {
            samples.count(.connectionsEnded, reason.rawValue, is: UInt64(max(0, count)))
        }
        for (reason, count) in counts.streamsEnded.sorted(by: { $0.key.rawValue < $1.key.rawValue })
        {
            samples.count(.streamsEnded, reason.rawValue, is: UInt64(max(0, count)))
        }
        samples.count(.tlsBytes, "direct", is: UInt64(max(0, counts.bytesSentDirectly)))
        samples.count(.tlsBytes, "channel", is: UInt64(max(0, counts.bytesSentByNIO)))
        samples.gauge(
            .certificateEnds, is: certificateEnds().timeIntervalSince1970.rounded())
        for (app, ends) in pushCertificateEnds().sorted(by: { $0.key < $1.key }) {
            samples.gauge(.pushCertificateEnds, app, is: ends.timeIntervalSince1970.rounded())
        }
        samples.gauge(
            .signingKeyAge,
            is: Double(max(0, engine.clock.wallSeconds() - keys.notificationKeySince)))
    }

    private func spans(_ samples: inout Samples) {
        let counts = spans()
        samples.count(.spans, "exported", is: counts?.exported ?? 0)
        samples.count(.spans, "dropped", is: counts?.dropped ?? 0)
        samples.count(.spans, "refused", is: counts?.refused ?? 0)
        samples.count(.spans, "undelivered", is: counts?.undelivered ?? 0)
    }

    private func process(_ samples: inout Samples) {
        samples.info(.build, BuildInformation.all.map(\.value))
        let figures = ProcessStats()
        samples.gauge(.processCPU, is: figures.cpuSeconds)
        samples.gauge(.processStart, is: figures.startSeconds)
        samples.gauge(.processResident, is: figures.residentBytes)
        samples.gauge(.processVirtual, is: figures.virtualBytes)
        samples.gauge(.processFiles, is: figures.openFiles)
        samples.gauge(.processFilesMax, is: figures.openFilesMax)
    }
}
