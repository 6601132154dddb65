import WidgetModel

/// A decided entry of the log, which every shard applies in sequence order.
package struct LogEntry: Sendable {
    /// The sequence of the entry in the total order.
    package let sequence: UInt64
    package let app: String
    /// The time of acceptance, ms since 1970.
    package let acceptedAt: Int64
    /// The urgency of pushes to devices without a stream.
    package let urgency: Urgency
    /// The content of the entry.
    package let body: Body

    /// The content of a log entry.
    package enum Body: Sendable {
        /// A data change, with the keys it bumps according to the catalog in force before it.
        case change(RuleSet.Decision, cause: ChangeCause?)
        /// A catalog: later changes are decided by this rule set.
        case catalog(RuleSet)
        /// The removal of the app and its clients; a later catalog counts as its first.
        case removal
        /// A reload that an operator requested.
        case reload(ReloadScope)
        /// A start of Live Activities. It makes nothing stale, and only pushes act on it.
        case start(ActivityStart)
        /// A registration that was put or removed. It makes nothing stale; a message of its own
        /// brings it to the client's streams.
        case registration
    }

    /// The number of keys that a shard looks up to apply the entry.
    package var keyCount: Int {
        if case .change(let decision, _) = body { decision.keys.count } else { 0 }
    }

    package init(
        sequence: UInt64, app: String, acceptedAt: Int64, urgency: Urgency = .normal, body: Body
    ) {
        self.sequence = sequence
        self.app = app
        self.acceptedAt = acceptedAt
        self.urgency = urgency
        self.body = body
    }
}

extension Urgency {
    /// The urgency as a number that orders it, and that is persisted.
    package var rank: UInt8 {
        switch self {
        case .veryLow: 0
        case .low: 1
        case .normal: 2
        case .high: 3
        }
    }

    package init(rank: UInt8) {
        self = Self.allCases.first { $0.rank == rank } ?? .normal
    }
}
