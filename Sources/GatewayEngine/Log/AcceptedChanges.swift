import GatewayCore
import Synchronization

/// A bounded number of recent entries of the log with the time at which they were accepted.
package final class AcceptedChanges: Sendable {
    /// The acceptance times of recent posts, in milliseconds since 1970; deliveries of older
    /// changes are not measured.
    private let times = Mutex(SequenceWindow<Int64>(rangesMax: 16_384))
    /// Written when changes are on disk and before they are published, so that it contains every
    /// change that a client can acknowledge.
    let recent = Mutex(RecentChanges())
    /// The head of the log at the start; changes are known only above it.
    let startedAt: UInt64

    package init(startedAt: UInt64) {
        self.startedAt = startedAt
    }

    /// Returns when a change or reload was accepted, in milliseconds since 1970; `nil` if that is
    /// unknown or no longer known.
    package func time(of sequence: UInt64) -> Int64? { times.withLock { $0[sequence] } }

    /// Records when entries were accepted.
    package func note(_ acceptedAt: Int64, of first: UInt64, through last: UInt64) {
        times.withLock { $0.note(acceptedAt, of: first, through: last) }
    }

    /// Records the decisions of changes that were accepted together.
    func note(
        _ decisions: [(sequence: UInt64, decision: RuleSet.Decision)], by ruleSet: RuleSet,
        at acceptedAt: Int64
    ) {
        guard let first = decisions.first?.sequence, let last = decisions.last?.sequence else {
            return
        }
        note(acceptedAt, of: first, through: last)
        recent.withLock { changes in
            for (sequence, decision) in decisions {
                changes.note(decision.keys, by: ruleSet, at: sequence, acceptedAt: acceptedAt)
            }
        }
    }
}
