/// Detects whether something with pending work makes progress, by observations from time to time.
package struct ProgressWatch: Sendable {
    private var stuck: (position: UInt64, since: Int64)?

    package init() {}

    /// Observes the current position and the target.
    ///
    /// - Parameter now: The monotonic time, ms.
    /// - Returns: The time since the position last changed while work was pending, ms; 0 when no
    ///   work is pending, or the position changed since the last observation.
    package mutating func look(position: UInt64, target: UInt64, now: Int64) -> Int64 {
        guard position < target else {
            stuck = nil
            return 0
        }
        guard let known = stuck, known.position == position else {
            stuck = (position, now)
            return 0
        }
        return max(0, now - known.since)
    }
}
