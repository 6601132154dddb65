import Synchronization

/// Counts pushes by channel, outcome and reason. Reasons are a peer's words: beyond a number of
/// different ones they count as `other`.
final class PushCounter: Sendable {
    /// What is counted apart.
    struct Labels: Sendable, Hashable {
        let channel: String
        let outcome: String
        let reason: String
    }

    private static let labelsMax = 200

    private let counts = Mutex<[Labels: UInt64]>([:])

    /// Counts a push that ended.
    func increment(_ channel: String, _ outcome: String, _ reason: String?) {
        let labels = Labels(channel: channel, outcome: outcome, reason: reason ?? "")
        counts.withLock { counts in
            let isKnown = counts[labels] != nil || counts.count < Self.labelsMax
            let counted =
                isKnown ? labels : Labels(channel: channel, outcome: outcome, reason: "other")
            counts[counted, default: 0] += 1
        }
    }

    /// The counts, ordered by their labels.
    var snapshot: [(labels: Labels, count: UInt64)] {
        counts.withLock { $0 }.map { ($0.key, $0.value) }.sorted {
            ($0.labels.channel, $0.labels.outcome, $0.labels.reason)
                < ($1.labels.channel, $1.labels.outcome, $1.labels.reason)
        }
    }
}
