/// The search for the last batch that was written before a time, by the heads of a few batches a
/// round. Times rise with sequences unless a clock was set; then the end is one of several places
/// where a batch from before the time lies before one that is not.
///
/// A value without I/O, clock or lock.
struct TimeSearch: Sendable {
    /// The number of sequences that are asked for in one round.
    static let width: Int64 = 16

    private let moment: Int64
    /// The last sequence that is known to be from before the time.
    private var low: Int64
    /// The last sequence that may be from before the time.
    private var high: Int64

    /// Creates a search among the sequences above a floor and up to a head.
    init(before moment: Int64, above floor: Int64, through head: Int64) {
        self.moment = moment
        low = floor
        high = max(floor, head)
    }

    /// The sequences whose batches are to be looked at next, in order; none at the end.
    var sequences: [Int64] {
        let count = min(Self.width, high - low)
        guard count > 0 else { return [] }
        // From the first one above `low` on, spread evenly up to `high`.
        let (width, rest) = (high - low).quotientAndRemainder(dividingBy: count)
        return (1...count).map { low + 1 + ($0 - 1) * width + min($0 - 1, rest) }
    }

    /// The last sequence from before the time, once ``sequences`` is empty; the floor if none is.
    var last: Int64 { low }

    /// Goes on by the batches that have the sequences, in order; those that the log has no more are
    /// taken for older.
    mutating func receive(_ heads: [BatchHead]) {
        let asked = sequences
        var found = heads[...]
        for sequence in asked {
            while let head = found.first, head.position.last < sequence { found.removeFirst() }
            guard let head = found.first, head.first <= sequence, head.at >= moment else {
                // From before the time, or gone.
                let end =
                    found.first.map { $0.first <= sequence ? $0.position.last : sequence }
                    ?? sequence
                low = min(high, max(low, end))
                continue
            }
            high = max(low, min(high, head.first - 1))
            return
        }
    }
}
