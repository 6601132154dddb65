/// Whether something that has work gets on with it, judged by looks from time to time.
package struct ProgressWatch: Sendable {
    private var stuck: (position: UInt64, since: Int64)?

    /// Nothing was looked at yet.
    package init() {}

    /// Looks at how far it is and how far it should get.
    ///
    /// - Parameter now: Monotonic milliseconds.
    /// - Returns: For how long it has had work and has not moved, in milliseconds; 0 when it has
    ///   none, or has moved since the last look.
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
