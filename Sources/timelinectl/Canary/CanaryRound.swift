import WidgetModel

/// The outcome of one change of a canary.
enum CanaryRound: Sendable, Equatable {
    /// The change was delivered and acknowledged; the durations count from its post.
    case confirmed(sequence: Int64, notified: Duration, confirmed: Duration)
    /// The change was accepted, but no notification of it arrived in time.
    case lost(sequence: Int64)
    /// The gateway rejected a request or could not be reached.
    case failed(String)
    /// A notification arrived that is not signed with the gateway's keys.
    case forged(String)

    var word: String {
        switch self {
        case .confirmed: "confirmed"
        case .lost: "lost"
        case .failed: "failed"
        case .forged: "forged"
        }
    }

    var json: JSONValue {
        switch self {
        case .confirmed(let sequence, let notified, let confirmed):
            [
                "outcome": .string(word), "sequence": .integer(sequence),
                "notifiedSeconds": .number(notified.inSeconds),
                "confirmedSeconds": .number(confirmed.inSeconds),
            ]
        case .lost(let sequence): ["outcome": .string(word), "sequence": .integer(sequence)]
        case .failed(let reason), .forged(let reason):
            ["outcome": .string(word), "reason": .string(reason)]
        }
    }

    var text: String {
        switch self {
        case .confirmed(let sequence, let notified, let confirmed):
            "change \(sequence): notified after \(notified.inMilliseconds) ms, confirmed after "
                + "\(confirmed.inMilliseconds) ms"
        case .lost(let sequence): "change \(sequence): accepted, but not delivered in time"
        case .failed(let reason): "failed: \(TextBlock.line(reason))"
        case .forged(let reason): "verification failed: \(TextBlock.line(reason))"
        }
    }
}

/// The metrics that a canary exposes to Prometheus through node_exporter's textfile collector.
struct CanaryStats: Sendable {
    let app: String
    private(set) var rounds: [String: Int] = [
        "confirmed": 0, "lost": 0, "failed": 0, "forged": 0,
    ]
    private var last: CanaryRound?
    private var lastConfirmedAt: Int64?

    init(app: String) {
        self.app = app
    }

    /// Counts a round that ended at `second`, in seconds since 1970.
    mutating func count(_ round: CanaryRound, at second: Int64) {
        rounds[round.word, default: 0] += 1
        last = round
        if case .confirmed = round { lastConfirmedAt = second }
    }

    /// The page, in Prometheus's text format 0.0.4.
    var text: String {
        var page = TextfilePage(app: app)
        page.add(
            "timeline_canary_rounds_total", type: "counter",
            help: "Changes posted by timelinectl canary, by result.",
            samples: rounds.sorted { $0.key < $1.key }.map {
                (",outcome=\"\($0.key)\"", "\($0.value)")
            })
        if let last {
            var isUp = false
            if case .confirmed = last { isUp = true }
            page.add(
                "timeline_canary_up", type: "gauge",
                help: "Whether the last change was delivered and acknowledged.",
                samples: [("", isUp ? "1" : "0")])
        }
        if case .confirmed(_, let notified, let confirmed) = last {
            page.add(
                "timeline_canary_notified_seconds", type: "gauge",
                help: "Time from posting the last change to its notification.",
                samples: [("", "\(notified.inSeconds)")])
            page.add(
                "timeline_canary_confirmed_seconds", type: "gauge",
                help: "Time from posting the last change to its acknowledgement.",
                samples: [("", "\(confirmed.inSeconds)")])
        }
        page.add(
            "timeline_canary_last_confirmed_timestamp_seconds", type: "gauge",
            help: "When a change was last acknowledged.",
            samples: lastConfirmedAt.map { [("", "\($0)")] } ?? [])
        return page.text
    }
}

extension Duration {
    var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }

    var inMilliseconds: Int64 { Int64(inSeconds * 1_000) }
}
