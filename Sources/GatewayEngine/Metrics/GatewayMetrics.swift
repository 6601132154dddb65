import CoreMetrics
import GatewayCore
import GatewayTelemetry
import Synchronization

/// The counters and recorders of the gateway, with swift-metrics. Updated once per change,
/// notification or request, never per delivery: each event loop sums up its deliveries and adds
/// them once per turn.
///
/// Each is explained by its ``GatewayTelemetry/MetricFamily``.
package final class GatewayMetrics: Sendable {
    /// Stores the metrics and writes the page.
    package let registry = MetricsRegistry(MetricFamily.gateway)

    let changesAccepted: CoreMetrics.Counter
    let changesDuplicate: CoreMetrics.Counter
    let changesUnmatched: CoreMetrics.Counter
    let changesBroad: CoreMetrics.Counter
    let decisions: CoreMetrics.Counter
    let deliveries: CoreMetrics.Counter
    let streamsOpened: CoreMetrics.Counter
    let streamsLagged: CoreMetrics.Counter
    let streamsStalled: CoreMetrics.Counter
    let streamsReplaced: CoreMetrics.Counter
    package let answersUnread: CoreMetrics.Counter
    package let polls: CoreMetrics.Counter
    let acknowledgements: CoreMetrics.Counter
    package let rebuildFailures: CoreMetrics.Counter
    let freshnessDecided: Recorder
    package let freshnessSent: [DeliveryChannel: RecorderByKind]
    let freshnessConfirmed: [DeliveryChannel: RecorderByKind]
    let rebuildSeconds: Recorder
    let streamSeconds: Recorder
    package let commitSeconds: Recorder
    package let commitJobs: Recorder

    package init() {
        let registry = registry
        func counter(
            _ family: MetricFamily, _ labels: [(String, String)] = []
        ) -> CoreMetrics.Counter {
            CoreMetrics.Counter(label: family.name, dimensions: labels, factory: registry)
        }
        @Sendable func recorder(_ family: MetricFamily, _ labels: [(String, String)] = [])
            -> Recorder
        {
            Recorder(
                label: family.name, dimensions: labels, aggregate: true, factory: registry)
        }
        changesAccepted = counter(.changesAccepted)
        changesDuplicate = counter(.changesDuplicate)
        changesUnmatched = counter(.changesUnmatched)
        changesBroad = counter(.changesBroad)
        decisions = counter(.decisions)
        deliveries = counter(.deliveries)
        streamsOpened = counter(.streamsOpened)
        streamsLagged = counter(.streamsLagged)
        streamsStalled = counter(.streamsStalled)
        streamsReplaced = counter(.streamsReplaced)
        answersUnread = counter(.answersUnread)
        polls = counter(.polls)
        acknowledgements = counter(.acknowledgements)
        rebuildFailures = counter(.rebuildFailures)
        freshnessDecided = recorder(.freshnessDecided)
        func byChannel(_ family: MetricFamily) -> [DeliveryChannel: RecorderByKind] {
            Dictionary(
                uniqueKeysWithValues: DeliveryChannel.allCases.map { channel in
                    (
                        channel,
                        RecorderByKind { kind in
                            recorder(family, [("channel", channel.rawValue), ("kind", kind)])
                        }
                    )
                })
        }
        freshnessSent = byChannel(.freshnessSent)
        freshnessConfirmed = byChannel(.freshnessConfirmed)
        rebuildSeconds = recorder(.rebuildSeconds)
        streamSeconds = recorder(.streamSeconds)
        commitSeconds = recorder(.commitSeconds)
        commitJobs = recorder(.commitJobs)
        // Exposed at zero: a query for growth would miss a series that begins with one.
        for outcome in ["applied", "unchanged", "refused"] {
            _ = counter(.reloads, [("outcome", outcome)])
        }
        for outcome in IssuerKeyFetch.allCases {
            _ = counter(.issuerKeyFetches, [("outcome", outcome.rawValue)])
        }
        for kind in PushAlert.allCases { _ = counter(.pushEvents, [("event", kind.rawValue)]) }
        for reason in RequestLimit.allCases {
            _ = counter(.requestsRefused, [("reason", reason.rawValue)])
        }
        for thread in SharedThread.allCases { _ = turns(of: thread) }
    }

    private func counter(
        _ family: MetricFamily, _ labels: [(String, String)]
    ) -> CoreMetrics.Counter {
        CoreMetrics.Counter(label: family.name, dimensions: labels, factory: registry)
    }

    package func turns(of thread: SharedThread) -> TurnRecorder {
        TurnRecorder(
            Recorder(
                label: MetricFamily.turnCPU.name, dimensions: [("thread", thread.rawValue)],
                aggregate: true, factory: registry))
    }

    /// Counts a request that a limit rejected.
    package func requestRefused(_ reason: RequestLimit) {
        counter(.requestsRefused, [("reason", reason.rawValue)]).increment()
    }

    /// Counts a configuration reload.
    package func reloaded(_ outcome: String) {
        counter(.reloads, [("outcome", outcome)]).increment()
    }

    /// Counts a fetch of an issuer's keys.
    package func fetchedIssuerKeys(_ outcome: IssuerKeyFetch) {
        counter(.issuerKeyFetches, [("outcome", outcome.rawValue)]).increment()
    }

    /// Counts a reload that was not needed: `acknowledged` or `unchanged`.
    func needlessReload(of kind: String, _ reason: String) {
        counter(.needlessReloads, [("kind", kind), ("reason", reason)]).increment()
    }

    /// Counts a problem with pushes that needs an operator.
    func pushEvent(_ kind: PushAlert) {
        counter(.pushEvents, [("event", kind.rawValue)]).increment()
    }

    /// Counts a push that needed content.
    package func contentAsked(_ app: String, _ outcome: String) {
        counter(.contentRequests, [("app", app), ("outcome", outcome)]).increment()
    }

    /// Counts a completed push.
    func pushEnded(_ channel: String, _ outcome: String, _ reason: String?, seconds: Double) {
        counter(
            .pushes, [("channel", channel), ("outcome", outcome), ("reason", reason ?? "")]
        ).increment()
        Recorder(
            label: MetricFamily.pushSeconds.name, dimensions: [("channel", channel)],
            aggregate: true, factory: registry
        ).record(seconds)
    }
}

/// The channels that metrics and traces distinguish: APNs pushes of all types count as one.
package enum DeliveryChannel: String, CaseIterable, Sendable {
    case stream
    case poll
    /// Apple's push service.
    case apns
    /// A request to the client's server.
    case webhook
    /// A browser's push service.
    case webpush
    /// Firebase Cloud Messaging.
    case fcm
}

/// A histogram for each widget kind. It caches no more kinds than the registry distinguishes.
package final class RecorderByKind: Sendable {
    /// The label for notifications that name several kinds, or everything.
    static let several = "several"
    private static let keptMax = 64

    private let make: @Sendable (String) -> Recorder
    private let recorders = Mutex<[String: Recorder]>([:])

    init(_ make: @escaping @Sendable (String) -> Recorder) {
        self.make = make
    }

    package func record(_ seconds: Double, kind: String) {
        let known = recorders.withLock { $0[kind] }
        let recorder = known ?? make(kind)
        if known == nil {
            recorders.withLock { if $0.count < Self.keptMax { $0[kind] = recorder } }
        }
        recorder.record(seconds)
    }
}

/// The outcome of a fetch of an issuer's keys.
package enum IssuerKeyFetch: String, Sendable, CaseIterable {
    case fetched, failed
}
