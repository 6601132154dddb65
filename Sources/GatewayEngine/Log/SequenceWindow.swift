import DequeModule

/// An element for each of the recent ranges of log entries; older ranges are forgotten.
struct SequenceWindow<Element> {
    private struct Range {
        let first: UInt64
        let last: UInt64
        let element: Element
    }

    private let rangesMax: Int
    private var ranges = Deque<Range>()

    init(rangesMax: Int) {
        self.rangesMax = rangesMax
    }

    /// Adds an element for the entries from `first` to `last`; ignored unless they follow the known
    /// ranges.
    mutating func note(_ element: Element, of first: UInt64, through last: UInt64) {
        guard first <= last, ranges.last.map({ $0.last < first }) ?? true else { return }
        if ranges.count >= rangesMax { ranges.removeFirst() }
        ranges.append(Range(first: first, last: last, element: element))
    }

    /// Returns the element of an entry's range; `nil` if no range contains the entry.
    subscript(sequence: UInt64) -> Element? {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].last < sequence { low = middle + 1 } else { high = middle }
        }
        guard low < ranges.count, ranges[low].first <= sequence else { return nil }
        return ranges[low].element
    }
}
