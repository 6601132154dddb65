/// A place in the log: the last sequence of a batch, and the chain of the history up to it.
///
/// Two histories that differ in one batch have different chains from there on, also where their
/// sequences are equal.
package struct LogPosition: Sendable, Hashable {
    /// The last sequence of the batch.
    package let last: Int64
    /// The 16 bytes of the chain, the first one the most significant.
    package let chain: UInt128

    package init(last: Int64, chain: UInt128) {
        self.last = last
        self.chain = chain
    }
}

extension LogPosition {
    /// Reads `last` and `chain`, from the column with this index.
    init(_ row: PostgresRow, column: Int) throws(PostgresError) {
        self.init(last: try row.integer(column), chain: try row.uuid(column + 1))
    }
}
