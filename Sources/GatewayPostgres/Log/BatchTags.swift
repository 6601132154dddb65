/// The tags of the newest batches, 12 bytes each. A cursor with another tag is of another history.
package struct BatchTags: Sendable, Equatable {
    /// The maximum number of tags.
    package static let countMax = 1_000_000

    private let countMax: Int
    private var lasts: [Int64] = []
    private var tags: [UInt32] = []
    /// The index of the oldest tag that is kept; those before it are removed together.
    private var start = 0

    /// Creates a memory.
    ///
    /// - Parameter countMax: The maximum number of tags, at least 1.
    package init(countMax: Int = BatchTags.countMax) { self.countMax = max(1, countMax) }

    /// The number of tags.
    package var count: Int { lasts.count - start }

    /// The last sequence of a batch and its tag, the oldest at 0.
    package subscript(index: Int) -> (last: Int64, tag: UInt32) {
        (lasts[start + index], tags[start + index])
    }

    /// Appends the tag of a batch, which must be higher than all before.
    package mutating func append(_ position: LogPosition) {
        append(last: position.last, tag: position.tag)
    }

    /// Appends a tag, which must be of a batch higher than all before.
    package mutating func append(last: Int64, tag: UInt32) {
        lasts.append(last)
        tags.append(tag)
        guard count > countMax else { return }
        start += 1
        // Amortised: as many are moved as were appended since the last time.
        if start > countMax {
            lasts.removeFirst(start)
            tags.removeFirst(start)
            start = 0
        }
    }

    /// Returns the tag of the batch that has a sequence; `nil` if it is not known.
    package func tag(of sequence: Int64) -> UInt32? {
        var (low, high) = (start, lasts.count)
        while low < high {
            let middle = (low + high) / 2
            if lasts[middle] < sequence { low = middle + 1 } else { high = middle }
        }
        // The oldest batch may have begun after the sequence, unless it ends there.
        guard low < lasts.count, low > start || lasts[low] == sequence else { return nil }
        return tags[low]
    }

    /// Two memories with the same tags are equal, however they are stored.
    package static func == (one: Self, other: Self) -> Bool {
        one.lasts[one.start...] == other.lasts[other.start...]
            && one.tags[one.start...] == other.tags[other.start...]
    }
}

extension LogPosition {
    /// The tag of the batch: the first 32 bits of its chain.
    package var tag: UInt32 { UInt32(truncatingIfNeeded: chain >> 96) }
}
