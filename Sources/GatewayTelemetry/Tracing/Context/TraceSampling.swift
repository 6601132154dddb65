/// Decides which traces are recorded: a trace from another process if that process records it, and
/// a share of those that begin here.
///
/// The decision depends on the trace id, so that all participants with the same share record the
/// same traces.
package struct TraceSampling: Sendable, Hashable {
    /// The number of random id values: seven bytes are random (W3C Trace Context Level 2, section
    /// 3.2.2.5.2).
    private static let randomness: UInt64 = 1 << 56
    /// The threshold; ids whose random bytes are below it are not recorded.
    private let threshold: UInt64

    /// Creates a rule that records this share of the traces that begin here, clamped to 0...1.
    package init(share: Double) {
        let share = share.isNaN ? 0 : min(1, max(0, share))
        threshold = Self.randomness - UInt64((share * Double(Self.randomness)).rounded())
    }

    /// Returns whether a trace is recorded. `parent` is the caller's context; `nil` if the trace
    /// begins here.
    package func samples(_ id: TraceID, parent: TraceContext?) -> Bool {
        if let parent { return parent.isSampled }
        return id.low % Self.randomness >= threshold
    }
}
