import Foundation
import GatewayStorage
import GatewayTLS
import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization
import WidgetModel

/// The plain admin port: metrics and health.
struct AdminRoutes: Sendable {
    let metrics: GatewayMetrics
    let sequencer: Sequencer
    let loops: ShardLoops
    let press: NotificationPress
    let tlsCounters: TLSCounters
    let certificateEnds: @Sendable () -> Date
    let readiness: Readiness

    func router() -> Router<BasicRequestContext> {
        let router = Router()
        router.get("/metrics") { _, _ in
            Response(
                status: .ok,
                headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
                body: .init(byteBuffer: .init(string: metricsText())))
        }
        router.get("/livez") { _, _ in
            Response(.ok, json: ["status": "live"])
        }
        router.get("/readyz") { _, _ in
            let failing = readiness.failing(loops: loops, head: sequencer.store.head)
            let body: JSONValue = [
                "status": failing.isEmpty ? "ready" : "not ready",
                "failing": .array(failing.map { .string($0) }),
            ]
            return Response(failing.isEmpty ? .ok : .serviceUnavailable, json: body)
        }
        return router
    }

    func metricsText() -> String {
        var page = MetricsText()
        let prefix = "timeline_gateway_"
        changes(&page, prefix)
        streams(&page, prefix)
        pushes(&page, prefix)
        store(&page, prefix)
        tls(&page, prefix)
        return page.text
    }

    private func changes(_ page: inout MetricsText, _ prefix: String) {
        page.counter(
            prefix + "changes_accepted_total", "Changes on disk and answered 202.",
            metrics.changesAccepted.value)
        page.counter(
            prefix + "changes_duplicate_total", "Events that were on disk already.",
            metrics.changesDuplicate.value)
        page.counter(
            prefix + "changes_unmatched_total", "Accepted changes that hit no rule.",
            metrics.changesUnmatched.value)
        page.counter(
            prefix + "changes_broad_total",
            "Accepted changes that hit a rule for lack of an attribute.",
            metrics.changesBroad.value)
        page.counter(
            prefix + "decisions_total", "Dependency keys raised by accepted changes.",
            metrics.decisions.value)
        page.histogram(
            prefix + "freshness_sent_seconds",
            "From a change's acceptance to its notification, once for each loop or poll.",
            metrics.freshnessSent)
        page.histogram(
            prefix + "freshness_confirmed_seconds",
            "From a change's acceptance to the report of its rebuild, once that is confirmed.",
            metrics.freshnessConfirmed)
        page.histogram(
            prefix + "rebuild_seconds", "How long clients say that a rebuild took.",
            metrics.rebuildSeconds)
    }

    private func streams(_ page: inout MetricsText, _ prefix: String) {
        page.counter(
            prefix + "deliveries_total", "Notifications written to streams.",
            metrics.deliveries.value)
        page.counter(
            prefix + "signatures_total", "Notifications signed.", press.signatures.value)
        page.gauge(
            prefix + "streams", "Streams open.",
            Double(loops.openStreams))
        page.counter(
            prefix + "streams_opened_total", "Streams opened.", metrics.streamsOpened.value)
        page.counter(
            prefix + "streams_lagged_total", "Times a stream could not take more bytes.",
            metrics.streamsLagged.value)
        page.counter(
            prefix + "streams_stalled_total", "Streams closed because they took no bytes.",
            metrics.streamsStalled.value)
        page.counter(prefix + "polls_total", "Polls answered.", metrics.polls.value)
        page.counter(
            prefix + "acknowledgements_total", "Acknowledgements taken.",
            metrics.acknowledgements.value)
        page.counter(
            prefix + "rebuild_failures_total", "Rebuilds that clients reported as failed.",
            metrics.rebuildFailures.value)
        page.gauge(
            prefix + "clients", "Clients registered.", Double(sequencer.registry.count))
    }

    private func pushes(_ page: inout MetricsText, _ prefix: String) {
        page.counter(
            prefix + "pushes_total", "Pushes that ended, by what came of them.",
            by: ["channel", "outcome", "reason"],
            metrics.pushes.snapshot.map {
                ([$0.labels.channel, $0.labels.outcome, $0.labels.reason], $0.count)
            })
        page.counter(
            prefix + "webhooks_disabled_total", "Webhooks that are not asked any more.",
            metrics.webhooksDisabled.value)
    }

    private func store(_ page: inout MetricsText, _ prefix: String) {
        let figures = sequencer.store.figures
        page.gauge(prefix + "log_head", "Sequence of the last log entry.", Double(figures.head))
        page.gauge(
            prefix + "log_floor", "Sequence of the last log entry that was forgotten.",
            Double(figures.floor))
        page.gauge(
            prefix + "shard_position_lowest",
            "Sequence of the last log entry that every event loop has applied.",
            Double(loops.all.map(\.position).min() ?? 0))
        page.counter(
            prefix + "store_commits_total", "Transactions on disk.", UInt64(figures.commits))
        page.counter(
            prefix + "store_commit_failures_total", "Transactions the disk refused.",
            UInt64(figures.failedCommits))
        page.counter(
            prefix + "store_jobs_refused_total", "Writes refused because too many waited.",
            UInt64(figures.refusedJobs))
        page.gauge(
            prefix + "store_jobs_waiting", "Writes waiting for the disk.",
            Double(figures.waitingJobs))
        page.gauge(
            prefix + "store_database_bytes", "Size of the database.",
            Double(figures.databaseBytes))
        page.gauge(
            prefix + "store_wal_bytes", "Size of the write-ahead log.", Double(figures.walBytes))
        page.histogram(
            prefix + "store_commit_seconds", "Duration of a transaction, sync included.",
            metrics.commitSeconds)
        page.histogram(
            prefix + "store_commit_jobs", "Writes that shared a transaction.", metrics.commitJobs)
    }

    private func tls(_ page: inout MetricsText, _ prefix: String) {
        let counts = tlsCounters.snapshot()
        page.counter(
            prefix + "tls_handshakes_total", "Handshakes done.", by: "kind",
            [
                ("full", UInt64(counts.handshakesFull)),
                ("resumed", UInt64(counts.handshakesResumed)),
            ])
        page.counter(
            prefix + "tls_handshakes_failed_total", "Handshakes that failed.", by: "reason",
            counts.handshakesFailed.sorted { $0.key.rawValue < $1.key.rawValue }
                .map { ($0.key.rawValue, UInt64($0.value)) })
        page.counter(
            prefix + "tls_bytes_total", "Ciphertext bytes sent.", by: "path",
            [
                ("direct", UInt64(counts.bytesSentDirectly)),
                ("channel", UInt64(counts.bytesSentByNIO)),
            ])
        page.gauge(
            prefix + "tls_certificate_not_after_seconds",
            "When the server certificate expires, in seconds since 1970.",
            certificateEnds().timeIntervalSince1970.rounded())
    }
}

/// Whether the gateway can do its work: fast to say no, also when nothing moves.
final class Readiness: Sendable {
    private struct State {
        var isServing = false
        var wasServing = false
        var lagging: (position: UInt64, since: ContinuousClock.Instant)?
    }

    /// Event loops that apply nothing for so long while entries wait are stuck.
    private static let progressDeadline = Duration.seconds(5)

    private let state = Mutex(State())

    /// The listener is up, or no longer.
    func set(serving: Bool) {
        state.withLock {
            $0.isServing = serving
            $0.wasServing = $0.wasServing || serving
        }
    }

    /// Whether the listener was ever up.
    var wasServing: Bool { state.withLock { $0.wasServing } }

    /// The parts that fail; empty when the gateway is ready.
    func failing(loops: ShardLoops, head: UInt64) -> [String] {
        let lowest = loops.all.map(\.position).min() ?? 0
        return state.withLock { state in
            var failing: [String] = []
            if !state.isServing { failing.append("listener") }
            if lowest >= head {
                state.lagging = nil
            } else if let lagging = state.lagging, lagging.position == lowest {
                if ContinuousClock.now - lagging.since > Self.progressDeadline {
                    failing.append("event loops")
                }
            } else {
                state.lagging = (lowest, .now)
            }
            return failing
        }
    }
}

extension Response {
    /// A JSON answer.
    fileprivate init(_ status: HTTPResponse.Status, json: JSONValue) {
        self.init(
            status: status, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: json.serialized)))
    }
}
