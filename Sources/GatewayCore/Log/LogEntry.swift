import WidgetModel

/// One entry of the log, decided: what every shard applies, in sequence order.
package struct LogEntry: Sendable {
    /// Its place in the one total order.
    package let sequence: UInt64
    /// The app it belongs to.
    package let app: String
    /// When it was accepted, in milliseconds since 1970.
    package let acceptedAt: Int64
    /// How soon devices that no stream reaches are to be told.
    package let urgency: Urgency
    /// What it says.
    package let body: Body

    /// What a log entry says.
    package enum Body: Sendable {
        /// A data change and the keys it raises under the catalog in force before it.
        case change(RuleSet.Decision, causeTime: String?)
        /// A catalog: changes after it are decided by this rule set.
        case catalog(RuleSet)
        /// The app is gone, with its clients; a catalog after it is its first.
        case removal
        /// An operator asks for a reload.
        case reload(ReloadScope)
    }

    /// The keys that a shard looks up to apply the entry.
    package var keyCount: Int {
        if case .change(let decision, _) = body { decision.keys.count } else { 0 }
    }

    /// An entry.
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
