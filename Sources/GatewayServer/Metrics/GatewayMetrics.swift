import CoreMetrics
import OpenMetrics
import Synchronization

/// What the gateway counts, with swift-metrics. Written once per change, notification or request,
/// never per delivery: deliveries are summed by each event loop and added once per turn.
///
/// What each means is said by its ``OpenMetrics/MetricFamily``.
final class GatewayMetrics: Sendable {
    /// Keeps them, and writes the page.
    let registry = MetricsRegistry(MetricFamily.gateway)

    let changesAccepted: CoreMetrics.Counter
    let changesDuplicate: CoreMetrics.Counter
    let changesUnmatched: CoreMetrics.Counter
    let changesBroad: CoreMetrics.Counter
    let decisions: CoreMetrics.Counter
    let deliveries: CoreMetrics.Counter
    let streamsOpened: CoreMetrics.Counter
    let streamsLagged: CoreMetrics.Counter
    let streamsStalled: CoreMetrics.Counter
    let answersUnread: CoreMetrics.Counter
    let polls: CoreMetrics.Counter
    let acknowledgements: CoreMetrics.Counter
    let rebuildFailures: CoreMetrics.Counter
    let freshnessDecided: Recorder
    let freshnessSent: ByChannel<RecorderByKind>
    let freshnessConfirmed: ByChannel<RecorderByKind>
    let rebuildSeconds: Recorder
    let streamSeconds: Recorder
    let commitSeconds: Recorder
    let commitJobs: Recorder

    init() {
        let registry = registry
        func counter(_ family: MetricFamily) -> CoreMetrics.Counter {
            CoreMetrics.Counter(label: family.name, dimensions: [], factory: registry)
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
        answersUnread = counter(.answersUnread)
        polls = counter(.polls)
        acknowledgements = counter(.acknowledgements)
        rebuildFailures = counter(.rebuildFailures)
        freshnessDecided = recorder(.freshnessDecided)
        freshnessSent = ByChannel { channel in
            RecorderByKind { kind in
                recorder(.freshnessSent, [("channel", channel.rawValue), ("kind", kind)])
            }
        }
        freshnessConfirmed = ByChannel { channel in
            RecorderByKind { kind in
                recorder(.freshnessConfirmed, [("channel", channel.rawValue), ("kind", kind)])
            }
        }
        rebuildSeconds = recorder(.rebuildSeconds)
        streamSeconds = recorder(.streamSeconds)
        commitSeconds = recorder(.commitSeconds)
        commitJobs = recorder(.commitJobs)
        // Known at zero: who watches for growth would not see a series that begins with one.
        for outcome in ["applied", "unchanged", "refused"] { _ = reloads(outcome) }
        for kind in OperationalEvents.Kind.allCases { _ = pushEvents(kind) }
        for reason in RequestLimits.Reason.allCases { _ = requestsRefused(reason) }
        for thread in SharedThread.allCases { _ = turns(of: thread) }
    }

    private func reloads(_ outcome: String) -> CoreMetrics.Counter {
        CoreMetrics.Counter(
            label: MetricFamily.reloads.name, dimensions: [("outcome", outcome)],
            factory: registry)
    }

    private func pushEvents(_ kind: OperationalEvents.Kind) -> CoreMetrics.Counter {
        CoreMetrics.Counter(
            label: MetricFamily.pushEvents.name, dimensions: [("event", kind.rawValue)],
            factory: registry)
    }

    private func requestsRefused(_ reason: RequestLimits.Reason) -> CoreMetrics.Counter {
        CoreMetrics.Counter(
            label: MetricFamily.requestsRefused.name, dimensions: [("reason", reason.rawValue)],
            factory: registry)
    }

    /// Records the turns of a sort of thread.
    func turns(of thread: SharedThread) -> TurnRecorder {
        TurnRecorder(
            Recorder(
                label: MetricFamily.turnCPU.name, dimensions: [("thread", thread.rawValue)],
                aggregate: true, factory: registry))
    }

    /// Counts a request that a limit refused.
    func requestRefused(_ reason: RequestLimits.Reason) { requestsRefused(reason).increment() }

    /// Counts a configuration that was read again.
    func reloaded(_ outcome: String) { reloads(outcome).increment() }

    /// Counts something that an operator has to know of pushes.
    func pushEvent(_ kind: OperationalEvents.Kind) { pushEvents(kind).increment() }

    /// Counts a push that ended.
    func pushEnded(_ channel: String, _ outcome: String, _ reason: String?, seconds: Double) {
        CoreMetrics.Counter(
            label: MetricFamily.pushes.name,
            dimensions: [
                ("channel", channel), ("outcome", outcome), ("reason", reason ?? ""),
            ], factory: registry
        ).increment()
        Recorder(
            label: MetricFamily.pushSeconds.name, dimensions: [("channel", channel)],
            aggregate: true, factory: registry
        ).record(seconds)
    }
}

/// How a client hears of what is stale.
enum DeliveryChannel: String, CaseIterable, Sendable {
    /// By a stream held open.
    case stream
    /// By asking.
    case poll
    /// By Apple's push service.
    case apns
    /// By a request to its server.
    case webhook
}

/// One of something for each channel.
struct ByChannel<Metric: Sendable>: Sendable {
    private let stream: Metric
    private let poll: Metric
    private let apns: Metric
    private let webhook: Metric

    init(_ make: (DeliveryChannel) -> Metric) {
        stream = make(.stream)
        poll = make(.poll)
        apns = make(.apns)
        webhook = make(.webhook)
    }

    subscript(channel: DeliveryChannel) -> Metric {
        switch channel {
        case .stream: stream
        case .poll: poll
        case .apns: apns
        case .webhook: webhook
        }
    }
}

/// A histogram for each kind of widget. The kinds it keeps at hand are no more than the registry
/// tells apart.
final class RecorderByKind: Sendable {
    /// A kind's name for notifications that name several, or everything.
    static let several = "several"
    private static let keptMax = 64

    private let make: @Sendable (String) -> Recorder
    private let recorders = Mutex<[String: Recorder]>([:])

    init(_ make: @escaping @Sendable (String) -> Recorder) {
        self.make = make
    }

    /// Counts an observation.
    func record(_ seconds: Double, kind: String) {
        let known = recorders.withLock { $0[kind] }
        let recorder = known ?? make(kind)
        if known == nil {
            recorders.withLock { if $0.count < Self.keptMax { $0[kind] = recorder } }
        }
        recorder.record(seconds)
    }
}
