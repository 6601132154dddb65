/// The progress of a client's notifications as sequences, without pushes, which the push scheduler
/// tracks.
///
/// Known only since the gateway started: a client that did not contact it since then reports its
/// progress with its next cursor.
package struct DeliveryProgress: Sendable {
    private struct Progress {
        var polled: UInt64 = 0
        var streamed: UInt64 = 0
    }

    /// The maximum number of kinds with separate entries; a client that requests more counts as
    /// having received less.
    private static let kindsMax = 64

    /// The sequence up to which the client has applied everything, by an acknowledgement or by
    /// resuming.
    package private(set) var confirmed: UInt64 = 0
    private var all = Progress()
    /// The notifications by streams and polls that were limited to some kinds.
    private var narrowed: [String: Progress] = [:]

    /// Whether the client, or notifications to it, may predate the gateway's start.
    private let isRestored: Bool

    /// Creates the progress of a client without notifications.
    ///
    /// - Parameter isRestored: Whether the client registered before the gateway started, so that
    ///   nothing is known.
    package init(isRestored: Bool = false) {
        self.isRestored = isRestored
    }

    /// Whether the client contacted the gateway since it started.
    package var isHeardOf: Bool {
        !isRestored || max(confirmed, all.polled, all.streamed) > 0 || !narrowed.isEmpty
    }

    /// Records that the client acknowledged, or resumed at, a cursor for all its subscriptions.
    package mutating func confirmed(upTo sequence: UInt64) {
        confirmed = max(confirmed, sequence)
    }

    /// Records that a poll reported everything up to `sequence`.
    package mutating func polled(upTo sequence: UInt64, kinds: Set<String>?) {
        tell(kinds) { $0.polled = max($0.polled, sequence) }
    }

    /// Records that a stream, which has ended, delivered everything up to `sequence`.
    package mutating func streamed(upTo sequence: UInt64, kinds: Set<String>?) {
        tell(kinds) { $0.streamed = max($0.streamed, sequence) }
    }

    /// The sequences up to which polls, and ended streams, have told everything.
    package var toldOfAll: (polled: UInt64, streamed: UInt64) { (all.polled, all.streamed) }

    /// Returns the sequence up to which polls have reported a kind.
    package func polled(_ kind: String) -> UInt64 {
        max(all.polled, narrowed[kind]?.polled ?? 0)
    }

    /// Returns the sequence up to which ended streams have delivered a kind.
    package func streamed(_ kind: String) -> UInt64 {
        max(all.streamed, narrowed[kind]?.streamed ?? 0)
    }

    private mutating func tell(_ kinds: Set<String>?, _ change: (inout Progress) -> Void) {
        guard let kinds else { return change(&all) }
        for kind in kinds where narrowed[kind] != nil || narrowed.count < Self.kindsMax {
            change(&narrowed[kind, default: Progress()])
        }
    }
}
