import GatewayTestSupport

/// The turns of the gateway's threads by their CPU time, from its metrics page.
struct TurnHistogram: Equatable {
    struct TurnCounts: Equatable {
        var count = 0
        /// The number of turns that took longer than ``boundSeconds``.
        var long = 0
    }

    /// The name of the metric.
    static let family = "timeline_gateway_turn_cpu_seconds"
    /// The time that no turn of a shared thread may exceed; one of the histogram's bounds.
    static let boundSeconds = 0.005
    /// The name of the threads for documents that cost more than a turn may. Only the request with
    /// such a document waits for them.
    static let documents = "documents"
    /// The name of the thread that commits. A turn of it may be one post's own commit; whether others
    /// wait for it shows in the bystander's latency.
    static let writer = "writer"
    /// The names of the threads that requests of all apps share.
    static let shared = ["event_loop", "arrivals", "requests", writer]

    private(set) var byThread: [String: TurnCounts] = [:]

    /// Reads a metrics page; `nil` where it lacks the histogram, or where a thread's part of it lacks
    /// its count or the bound.
    init?(_ page: MetricsPage) {
        var shorts: [String: Int] = [:]
        for (labels, value) in page.labelled(Self.family + "_bucket")
        where labels["le"].flatMap(Double.init) == Self.boundSeconds {
            if let thread = labels["thread"] { shorts[thread] = Int(exactly: value) }
        }
        for (labels, value) in page.labelled(Self.family + "_count") {
            guard let thread = labels["thread"], let count = Int(exactly: value),
                let short = shorts[thread]
            else { return nil }
            byThread[thread] = TurnCounts(count: count, long: count - short)
        }
        if byThread.isEmpty { return nil }
    }

    /// The turns since an earlier page of the same process.
    func since(_ earlier: TurnHistogram) -> TurnHistogram {
        var difference = self
        for (thread, turns) in earlier.byThread {
            difference.byThread[thread, default: TurnCounts()].count -= turns.count
            difference.byThread[thread, default: TurnCounts()].long -= turns.long
        }
        return difference
    }

    /// The threads with long turns, and how many, sorted by name: all but those for documents.
    var long: [(thread: String, count: Int)] {
        byThread.filter { $0.key != Self.documents && $0.value.long != 0 }
            .map { ($0.key, $0.value.long) }.sorted { $0.0 < $1.0 }
    }
}
