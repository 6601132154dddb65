/// The tags of the newest batches, 12 bytes each. A cursor with another tag is of another history.
///
/// They lie in chunks, so that a copy of a million of them costs the next append one chunk.
package struct BatchTags: Sendable, Equatable {
    /// The maximum number of tags.
    package static let countMax = 1_000_000
    /// The number of tags in a chunk.
    private static let chunkMax = 4_096

    private struct Chunk {
        var lasts: [Int64] = []
        var tags: [UInt32] = []
    }

    private let countMax: Int
    /// All but the last one are full.
    private var chunks: [Chunk] = []
    /// The index of the oldest tag that is kept, in the first chunk.
    private var start = 0
    /// The number of tags.
    package private(set) var count = 0

    /// Creates a memory.
    ///
    /// - Parameter countMax: The maximum number of tags, at least 1.
    package init(countMax: Int = BatchTags.countMax) { self.countMax = max(1, countMax) }

    /// The last sequence of a batch and its tag, the oldest at 0.
    package subscript(index: Int) -> (last: Int64, tag: UInt32) {
        let (chunk, place) = (start + index).quotientAndRemainder(dividingBy: Self.chunkMax)
        return (chunks[chunk].lasts[place], chunks[chunk].tags[place])
    }

    /// The newest tag with the last sequence of its batch; `nil` if there is none.
    package var newest: (last: Int64, tag: UInt32)? { count > 0 ? self[count - 1] : nil }

    /// Appends the tag of a batch, which must be higher than all before.
    package mutating func append(_ position: LogPosition) {
        append(last: position.last, tag: position.tag)
    }

    /// Appends a tag, which must be of a batch higher than all before.
    package mutating func append(last: Int64, tag: UInt32) {
        if start + count == chunks.count * Self.chunkMax { chunks.append(Chunk()) }
        chunks[chunks.count - 1].lasts.append(last)
        chunks[chunks.count - 1].tags.append(tag)
        count += 1
        guard count > countMax else { return }
        count -= 1
        start += 1
        if start == Self.chunkMax {
            chunks.removeFirst()
            start = 0
        }
    }

    /// Returns the tag of the batch that has a sequence; `nil` if it is not known.
    package func tag(of sequence: Int64) -> UInt32? {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle].last < sequence { low = middle + 1 } else { high = middle }
        }
        // The oldest batch may have begun after the sequence, unless it ends there.
        guard low < count, low > 0 || self[low].last == sequence else { return nil }
        return self[low].tag
    }

    /// Two memories with the same tags are equal, however they are stored.
    package static func == (one: Self, other: Self) -> Bool {
        one.count == other.count && (0..<one.count).allSatisfy { one[$0] == other[$0] }
    }
}

extension LogPosition {
    /// The tag of the batch: the first 32 bits of its chain.
    package var tag: UInt32 { UInt32(truncatingIfNeeded: chain >> 96) }
}
