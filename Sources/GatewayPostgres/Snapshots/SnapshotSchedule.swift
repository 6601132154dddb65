/// Decides when the node that holds the lease writes a snapshot.
package struct SnapshotSchedule: Sendable, Equatable {
    package enum Decision: Sendable, Equatable {
        /// Write one now.
        case write
        /// The newest one is new enough, or nothing has changed since.
        case notDue
        /// The newest one knows more than this node: it goes on from further back in the log. Nodes
        /// that start from it tell no client of what is not stale, so it is not replaced yet.
        case knowsLess
    }

    /// The age at which a snapshot is replaced, milliseconds.
    package var interval: Int64 = 600_000
    /// The number of changes after which a snapshot is replaced.
    package var changesMax: Int64 = 1_000_000
    /// The age at which a snapshot is replaced also by one that knows less, milliseconds. No node
    /// that knows as much has replaced it for that long, and the log cannot be shortened before.
    package var patience: Int64 = 3_600_000

    /// The defaults.
    package init() {}

    /// Returns the decision of a node.
    ///
    /// - Parameters:
    ///   - position: The last sequence that the node has applied.
    ///   - floor: The sequence up to which it knows nothing.
    ///   - heads: The snapshots that there are, the newest first.
    package func decision(
        at position: Int64, floor: Int64, heads: [SnapshotHead]
    ) -> Decision {
        guard let newest = heads.first(where: { $0.misfit == nil }) else {
            return position > 0 ? .write : .notDue
        }
        let changes = position - newest.position.last
        guard changes > 0, newest.age >= interval || changes >= changesMax else { return .notDue }
        return floor > newest.floor && newest.age < patience ? .knowsLess : .write
    }
}
