/// How long persisted values were away. While a program runs its monotonic clock says how much
/// time passed; across a restart only the wall clock can, and that one may have been set.
package enum TimeAway {
    /// More than this is never believed, in milliseconds.
    package static let longest: Int64 = 86_400_000

    /// The milliseconds between two readings of the wall clock, 0...``longest``.
    package static func between(_ savedAt: Int64, _ wall: Int64) -> Int64 {
        let (difference, overflow) = wall.subtractingReportingOverflow(savedAt)
        guard !overflow else { return wall > savedAt ? longest : 0 }
        return min(max(difference, 0), longest)
    }
}

extension Int64 {
    /// The moment `duration` later, or the last one there is.
    package func later(by duration: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(duration)
        return overflow ? (duration < 0 ? .min : .max) : sum
    }

    /// The time since `moment`; 0 when that is yet to come.
    func elapsed(since moment: Int64) -> Int64 {
        guard self > moment else { return 0 }
        let (difference, overflow) = subtractingReportingOverflow(moment)
        return overflow ? .max : difference
    }
}
