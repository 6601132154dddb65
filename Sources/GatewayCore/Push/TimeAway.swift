/// The time since values were stored. A running program uses its monotonic clock; across a
/// restart only the wall clock is available, which may have been set.
package enum TimeAway {
    /// The longest time that is trusted, ms.
    package static let longest: Int64 = 86_400_000

    /// Returns the milliseconds between two readings of the wall clock, 0...``longest``.
    package static func between(_ savedAt: Int64, _ wall: Int64) -> Int64 {
        let (difference, overflow) = wall.subtractingReportingOverflow(savedAt)
        guard !overflow else { return wall > savedAt ? longest : 0 }
        return min(max(difference, 0), longest)
    }
}

extension Int64 {
    /// Returns the time that is `duration` later, saturating on overflow.
    package func later(by duration: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(duration)
        return overflow ? (duration < 0 ? .min : .max) : sum
    }

    /// Returns the time since `moment`; 0 if it is in the future.
    func elapsed(since moment: Int64) -> Int64 {
        guard self > moment else { return 0 }
        let (difference, overflow) = subtractingReportingOverflow(moment)
        return overflow ? .max : difference
    }
}
