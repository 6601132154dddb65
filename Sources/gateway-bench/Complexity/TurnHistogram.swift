/// How often turns of the gateway's threads took how much CPU, as its metrics page tells it.
struct TurnHistogram: Equatable {
    /// The turns of one thread.
    struct Turns: Equatable {
        /// The number of all turns.
        var count = 0
        /// The number of turns that took longer than ``boundSeconds``.
        var long = 0
    }

    /// The name of the metric.
    static let family = "timeline_gateway_turn_cpu_seconds"
    /// The time that no turn of a shared thread may exceed; one of the histogram's bounds.
    static let boundSeconds = 0.005
    /// The name of the threads for documents that cost more than a turn may. Nothing waits for them
    /// but what brought such a document.
    static let documents = "documents"
    /// The name of the thread that commits. A turn of it may be one post's own commit; that it keeps
    /// nobody waiting shows in the bystander's latency.
    static let writer = "writer"
    /// The names of the threads that requests of all apps share.
    static let shared = ["event_loop", "arrivals", "requests", writer]

    /// The turns of each thread, by its name.
    private(set) var byThread: [String: Turns] = [:]

    /// Reads a metrics page in Prometheus' text format; `nil` where it lacks the histogram, or where
    /// a thread's part of it lacks its count or the bound.
    init?(metricsPage page: some StringProtocol) {
        var (counts, shorts): ([String: Int], [String: Int]) = ([:], [:])
        for line in page.split(whereSeparator: \.isNewline) where line.hasPrefix(Self.family) {
            let rest = line.dropFirst(Self.family.count)
            guard let open = rest.firstIndex(of: "{"), let close = rest.lastIndex(of: "}"),
                open < close,
                let number = rest[rest.index(after: close)...].split(separator: " ").first,
                let value = Double(number), let count = Int(exactly: value)
            else { continue }
            let labels = Self.labels(rest[rest.index(after: open)..<close])
            guard let thread = labels["thread"] else { continue }
            switch rest[..<open] {
            case "_count": counts[thread] = count
            case "_bucket" where labels["le"].flatMap { Double($0) } == Self.boundSeconds:
                shorts[thread] = count
            default: break
            }
        }
        guard !counts.isEmpty else { return nil }
        for (thread, count) in counts {
            guard let short = shorts[thread] else { return nil }
            byThread[thread] = Turns(count: count, long: count - short)
        }
    }

    /// The turns since an earlier page of the same process.
    func since(_ earlier: TurnHistogram) -> TurnHistogram {
        var difference = self
        for (thread, turns) in earlier.byThread {
            difference.byThread[thread, default: Turns()].count -= turns.count
            difference.byThread[thread, default: Turns()].long -= turns.long
        }
        return difference
    }

    /// The threads with long turns, and how many, sorted by name: all but those for documents.
    var long: [(thread: String, count: Int)] {
        byThread.filter { $0.key != Self.documents && $0.value.long != 0 }
            .map { ($0.key, $0.value.long) }.sorted { $0.0 < $1.0 }
    }

    /// Reads `thread="writer",le="0.005"`; no name or value here has a quote or a comma in it.
    private static func labels(_ text: some StringProtocol) -> [String: String] {
        var labels: [String: String] = [:]
        for pair in text.split(separator: ",") {
            let parts = pair.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { continue }
            let name = String(parts[0].drop { $0 == " " })
            labels[name] = String(parts[1].filter { $0 != "\"" })
        }
        return labels
    }
}
