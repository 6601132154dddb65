/// Which traces are recorded: those their beginner records, and of those that begin here a share.
///
/// The share goes by the trace's id, so that all who ask for the same share of the same random ids
/// record the same traces.
package struct TraceSampling: Sendable, Hashable {
    /// Seven bytes of an id are random (W3C Trace Context Level 2, section 3.2.2.5.2).
    private static let randomness: UInt64 = 1 << 56
    /// Ids whose random bytes are below are not recorded.
    private let threshold: UInt64

    /// - Parameter share: Of the traces that begin here, from 0 to 1; anything else counts as the
    ///   nearer of them.
    package init(share: Double) {
        let share = share.isNaN ? 0 : min(1, max(0, share))
        threshold = Self.randomness - UInt64((share * Double(Self.randomness)).rounded())
    }

    /// Whether a trace is recorded.
    ///
    /// - Parameter parent: Where it comes from; `nil` where it begins here.
    package func samples(_ id: TraceID, parent: TraceContext?) -> Bool {
        if let parent { return parent.isSampled }
        return id.low % Self.randomness >= threshold
    }
}
