/// What the gateway counts. Written once per change, notification or request, never per delivery:
/// deliveries are summed by each event loop and added once per turn.
final class GatewayMetrics: Sendable {
    /// Changes answered 202, without duplicates.
    let changesAccepted = Counter()
    /// Events that were on disk already.
    let changesDuplicate = Counter()
    /// Accepted changes that hit no rule.
    let changesUnmatched = Counter()
    /// Accepted changes that hit a rule for lack of an attribute.
    let changesBroad = Counter()
    /// Keys raised by accepted changes.
    let decisions = Counter()
    /// Frames handed to streams.
    let deliveries = Counter()
    /// Streams opened.
    let streamsOpened = Counter()
    /// Streams that lagged.
    let streamsLagged = Counter()
    /// Streams closed because they could not be written to for too long.
    let streamsStalled = Counter()
    /// Polls answered.
    let polls = Counter()
    /// Acknowledgements taken.
    let acknowledgements = Counter()
    /// Widgets and recommendation sets that clients failed to rebuild.
    let rebuildFailures = Counter()
    /// From a change's acceptance to the last write of its notifications on a loop, or to the first
    /// answer to a client's poll that speaks of it, in seconds.
    let freshnessSent = ByChannel { Histogram(bounds: GatewayMetrics.freshnessBounds) }
    /// From a change's acceptance to the acknowledgement that reports a timeline as rebuilt for it,
    /// once a cursor of the client covers the change, in seconds.
    let freshnessConfirmed = ByChannel { Histogram(bounds: GatewayMetrics.freshnessBounds) }
    /// How long clients say that a rebuild took, in seconds.
    let rebuildSeconds = Histogram(bounds: GatewayMetrics.freshnessBounds)
    /// Pushes that ended, by channel, outcome and reason.
    let pushes = PushCounter()
    /// Webhooks that are not asked any more.
    let webhooksDisabled = Counter()
    /// Duration of a group commit, in seconds.
    let commitSeconds = Histogram(bounds: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2])
    /// Jobs that shared a commit.
    let commitJobs = Histogram(bounds: [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000])

    private static let freshnessBounds = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600,
    ]
}

/// How a client hears of what is stale.
enum DeliveryChannel: String, CaseIterable, Sendable {
    /// By a stream held open.
    case stream
    /// By asking.
    case poll
}

/// One of something for each channel.
struct ByChannel<Metric: Sendable>: Sendable {
    private let stream: Metric
    private let poll: Metric

    init(_ make: () -> Metric) {
        stream = make()
        poll = make()
    }

    subscript(channel: DeliveryChannel) -> Metric {
        switch channel {
        case .stream: stream
        case .poll: poll
        }
    }
}
