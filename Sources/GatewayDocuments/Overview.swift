import WidgetModel

/// The current status of the gateway, and its history if that was asked for.
package struct Overview: Codable, Sendable {
    package var time = ""
    /// The length of the recent period.
    package var recentSeconds: Int64 = 0
    package var ready = false
    /// The current problems, most severe first.
    package var troubles: [HealthIssue] = []
    package var decided = Quantiles()
    /// Latencies by channel.
    package var sent = JSONMap<Quantiles>()
    package var confirmed = JSONMap<Quantiles>()
    package var commit = Quantiles()
    package var recent = Counts()
    package var rates = Rates()
    package var clients = 0
    package var streams = 0
    package var lagging = 0
    package var certificateEnds = ""
    package var log = Log()
    /// The cluster that the gateway is a node of, if there is one.
    package var cluster: Cluster?
    /// The number of push subscriptions in each state, if there are any.
    package var standings: PushStates?
    package var series: Series?

    package init() {}

    package struct Cluster: Codable, Sendable {
        /// Whether it is this gateway.
        package var leads = false
        /// Its name; absent if none leads.
        package var leader: String?
        /// How often the lead was taken.
        package var generation: Int64 = 0

        package init() {}
    }

    /// A current problem, in words for an operator.
    package struct HealthIssue: Codable, Sendable {
        package var level = ""
        package var what = ""
        package var remedy = ""
        /// The page of the dashboard that shows it.
        package var page: String?

        package init() {}
    }

    /// The number of events in the recent period.
    package struct Counts: Codable, Sendable, Equatable {
        package var changes: UInt64 = 0
        package var unmatched: UInt64 = 0
        package var broad: UInt64 = 0
        package var deliveries: UInt64 = 0
        package var polls: UInt64 = 0
        package var acknowledgements: UInt64 = 0
        package var rebuildFailures: UInt64 = 0
        package var pushesSent: UInt64 = 0
        package var pushesFailed: UInt64 = 0
        package var commits: UInt64 = 0
        package var commitFailures: UInt64 = 0
        package var writesRefused: UInt64 = 0
        package var cursorsAhead: UInt64 = 0

        package init() {}
    }

    /// Events per second.
    package struct Rates: Codable, Sendable {
        package var changes = 0.0
        package var deliveries = 0.0
        package var polls = 0.0
        package var acknowledgements = 0.0
        package var pushes = 0.0

        package init() {}
    }

    package struct Log: Codable, Sendable {
        package var head: UInt64 = 0
        package var floor: UInt64 = 0
        package var applied: UInt64 = 0
        package var waitingWrites = 0
        package var databaseBytes: Int64 = 0
        package var walBytes: Int64 = 0

        package init() {}
    }

    /// The number of push subscriptions in each state.
    package struct PushStates: Codable, Sendable {
        package var confirmed = 0
        package var told = 0
        package var underWay = 0
        package var withheld = 0
        package var waiting = 0
        package var unreachable = 0

        package init() {}
    }

    /// The history: one number, or none, for each time.
    package struct Series: Codable, Sendable {
        /// Milliseconds since 1970.
        package var at: [Int64] = []
        package var decided = Lines()
        package var sent = JSONMap<Lines>()
        package var confirmed = JSONMap<Lines>()
        package var commit = Lines()
        package var changes: [Double?] = []
        package var deliveries: [Double?] = []
        package var polls: [Double?] = []
        package var pushesSent: [Double?] = []
        package var pushesFailed: [Double?] = []
        package var streams: [Double?] = []
        package var lagging: [Double?] = []
        package var clients: [Double?] = []
        package var withheld: [Double?] = []

        package init() {}
    }

    /// The history of two quantiles.
    package struct Lines: Codable, Sendable {
        package var p50: [Double?] = []
        package var p99: [Double?] = []

        package init() {}
    }
}

/// The number of observations and two of their quantiles in seconds, which are `null` without
/// observations.
package struct Quantiles: Codable, Sendable {
    package var count: UInt64 = 0
    package var p50: Double?
    package var p99: Double?

    package init() {}

    /// Writes quantiles that are absent as `null`.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(count, forKey: .count)
        try container.encode(p50, forKey: .p50)
        try container.encode(p99, forKey: .p99)
    }
}
