/// Decides which slices of the log go. The server checks the limits again, under its lock.
package struct RetentionPlan: Sendable, Equatable {
    /// The state of the log that the decision follows from.
    package struct Log: Sendable, Equatable {
        /// The newest sequence.
        package var head: Int64
        /// The sequence up to which batches may be gone.
        package var floor: Int64
        package var slice: Int64
        /// The position of the oldest reservation or kept snapshot; `nil` without any.
        package var oldestHold: Int64?
        /// The number of tables that should exist and do not.
        package var missingSlices: Int64

        package init(
            head: Int64, floor: Int64, slice: Int64, oldestHold: Int64?, missingSlices: Int64 = 0
        ) {
            self.head = head
            self.floor = floor
            self.slice = slice
            self.oldestHold = oldestHold
            self.missingSlices = missingSlices
        }
    }

    /// The number of slices that are kept, the newest one included.
    package static let slicesKept: Int64 = 12

    /// The number of the first slice that stays; `nil` if the floor stays where it is.
    package let firstKept: Int64?
    /// Whether a slice has to be made.
    package let needsSlice: Bool

    /// Decides.
    ///
    /// - Parameter slicesKept: At least 1.
    package init(_ log: Log, slicesKept: Int64 = Self.slicesKept) {
        let newest = log.head / log.slice
        let held = min(log.oldestHold ?? .max, log.head) / log.slice
        let first = min(newest - max(1, slicesKept) + 1, held)
        firstKept = first > log.floor / log.slice ? first : nil
        needsSlice = log.missingSlices > 0
    }
}
