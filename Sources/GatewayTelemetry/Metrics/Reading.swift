/// The value of a family for one set of labels.
package struct Reading: Sendable, Equatable {
    /// The label values in the family's order.
    package let labels: [String]
    package let value: Value

    /// A measured value by type.
    package enum Value: Sendable, Equatable {
        case count(UInt64)
        case number(Double)
        /// The counts of a histogram by bucket, not cumulative; the last is for all values above
        /// the highest bound.
        case histogram(bounds: [Double], counts: [UInt64])
    }
}
