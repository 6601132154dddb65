/// How far a client has heard, by levels; pushes apart, of which the desk knows that makes them.
///
/// Known since the gateway started: a client that was not heard of since says it with its next
/// cursor.
package struct Hearing: Sendable {
    private struct Told {
        var polled: UInt64 = 0
        var streamed: UInt64 = 0
    }

    /// Kinds that are remembered one by one; a client that asks for more is known to have heard
    /// less.
    private static let kindsMax = 64

    /// It has applied everything up to here: it acknowledged that, or resumed from it.
    package private(set) var confirmed: UInt64 = 0
    private var all = Told()
    /// What it was told by streams and polls of some kinds only.
    private var narrowed: [String: Told] = [:]

    /// Whether the client, or what it heard, may be older than what is known.
    private let isRestored: Bool

    /// It has heard nothing.
    ///
    /// - Parameter isRestored: It was registered before the gateway started: nothing is known.
    package init(isRestored: Bool = false) {
        self.isRestored = isRestored
    }

    /// Whether it was heard of since the gateway started.
    package var isHeardOf: Bool {
        !isRestored || max(confirmed, all.polled, all.streamed) > 0 || !narrowed.isEmpty
    }

    /// It acknowledged, or resumed from, a cursor for all that it holds.
    package mutating func confirmed(upTo sequence: UInt64) {
        confirmed = max(confirmed, sequence)
    }

    /// A poll told it of everything up to `sequence`.
    package mutating func polled(upTo sequence: UInt64, kinds: Set<String>?) {
        tell(kinds) { $0.polled = max($0.polled, sequence) }
    }

    /// A stream that ended had told it of everything up to `sequence`.
    package mutating func streamed(upTo sequence: UInt64, kinds: Set<String>?) {
        tell(kinds) { $0.streamed = max($0.streamed, sequence) }
    }

    /// Up to where polls have told it of a kind.
    package func polled(_ kind: String) -> UInt64 {
        max(all.polled, narrowed[kind]?.polled ?? 0)
    }

    /// Up to where streams that ended have told it of a kind.
    package func streamed(_ kind: String) -> UInt64 {
        max(all.streamed, narrowed[kind]?.streamed ?? 0)
    }

    private mutating func tell(_ kinds: Set<String>?, _ change: (inout Told) -> Void) {
        guard let kinds else { return change(&all) }
        for kind in kinds where narrowed[kind] != nil || narrowed.count < Self.kindsMax {
            change(&narrowed[kind, default: Told()])
        }
    }
}
