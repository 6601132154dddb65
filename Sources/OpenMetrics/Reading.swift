/// What was measured of a family, for one set of labels.
package struct Reading: Sendable, Equatable {
    /// What the labels are, in the family's order.
    package let labels: [String]
    /// What was measured.
    package let value: Value

    /// What was measured.
    package enum Value: Sendable, Equatable {
        /// A counter's.
        case count(UInt64)
        /// A gauge's.
        case number(Double)
        /// A histogram's counts by bucket, not cumulative, the last for all above the highest bound.
        case histogram(bounds: [Double], counts: [UInt64])
    }
}
