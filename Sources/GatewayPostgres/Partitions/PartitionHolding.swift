/// A partition that the node owns, as far as it knows.
struct PartitionHolding: Sendable {
    /// The way from the taking of a partition to its release.
    enum Stage: Sendable, Equatable {
        /// Waits to be loaded.
        case queued
        /// Its rows are read.
        case loading(LoadProgress)
        /// Loaded: its clients may be pushed to.
        case owned
        /// The owner stops pushing and notes the last rows.
        case settling
        /// Its last rows are written, then it is released.
        case leaving
        /// The release was sent.
        case releasing
    }

    /// The progress through the two tables of a partition.
    struct LoadProgress: Sendable, Equatable {
        /// The progress through one table.
        enum Scan: Sendable, Equatable {
            /// The next portion begins behind this client; `nil` for the first.
            case next(after: ClientName?)
            case ended
        }

        var registrations = Scan.next(after: nil)
        var states = Scan.next(after: nil)
    }

    let generation: Int64
    var stage: Stage
    /// The sequence that the owner noted as clear, and the one that was written.
    var clear: Int64 = 0
    var writtenClear: Int64 = 0
    /// The earliest time to write the noted sequence.
    var clearDue: Int64 = 0
}

/// The time since which each node has not renewed its lease, by this node's monotonic clock.
///
/// The server's clock says whether a lease runs; after it was set, that is wrong. A node is
/// therefore only taken from when it has not renewed for as long as it pushes without renewing.
struct SilenceRecord: Sendable {
    private var seen: [Int32: (beat: Int64, since: Int64)] = [:]

    /// Records the counts of renewals that were just read.
    mutating func note(_ beats: [Int32: Int64], at now: Int64) {
        seen = beats.reduce(into: [:]) { seen, entry in
            let (node, beat) = entry
            let before = self.seen[node]
            seen[node] = before?.beat == beat ? before : (beat, now)
        }
    }

    /// Returns the nodes that have not renewed for as long as `milliseconds`, by number.
    func nodes(silentFor milliseconds: Int64, at now: Int64) -> [SilentNode] {
        seen.filter { now - $0.value.since >= milliseconds }
            .map { SilentNode(node: $0.key, beat: $0.value.beat) }
            .sorted { $0.node < $1.node }
    }
}
