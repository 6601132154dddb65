/// The newest positions that a node has applied, to tell which of them a log still has.
package struct KnownPositions: Sendable {
    private let countMax: Int
    private var positions: [LogPosition] = []
    /// The index of the oldest position that is kept; those before it are removed together.
    private var start = 0

    /// Creates a memory.
    ///
    /// - Parameter countMax: The maximum number of positions, at least 1.
    package init(countMax: Int = 1_000_000) { self.countMax = max(1, countMax) }

    /// The number of positions.
    package var count: Int { positions.count - start }

    /// The newest position.
    package var last: LogPosition? { count > 0 ? positions.last : nil }

    /// Returns a position, the oldest at 0.
    package subscript(index: Int) -> LogPosition { positions[start + index] }

    /// Appends a position, which must be higher than all before.
    package mutating func append(_ position: LogPosition) {
        positions.append(position)
        guard count > countMax else { return }
        start += 1
        // Amortised: as many are moved as were appended since the last time.
        if start > countMax {
            positions.removeFirst(start)
            start = 0
        }
    }

    /// Forgets all positions above `last`.
    package mutating func removeAll(above last: Int64) {
        while let newest = self.last, newest.last > last { positions.removeLast() }
    }
}

/// The search for the last position that two histories have in common: equal up to there, different
/// behind.
///
/// Each step compares a few positions spread evenly over what is undecided, so that a million of
/// them take four steps.
struct CommonPositionSearch: Sendable {
    private static let samplesMax = 64

    private let known: KnownPositions
    /// Every position below this index is common, or below the lowest of the other log.
    private var commonEnd = 0
    /// No position from this index on is common.
    private var foreignStart: Int
    /// Whether the position before `commonEnd` is in the other log.
    private var hasCommon = false

    init(_ known: KnownPositions) {
        self.known = known
        foreignStart = known.count
    }

    /// The positions to compare next; empty when the search has ended.
    var samples: [Int64] {
        let width = foreignStart - commonEnd
        guard width > 0 else { return [] }
        let count = min(width, Self.samplesMax)
        return (0..<count).map { known[commonEnd + width * $0 / count].last }
    }

    /// The last common position, once the search has ended; `nil` if there is none.
    var result: LogPosition? { hasCommon ? known[commonEnd - 1] : nil }

    /// Handles the comparison of ``samples``.
    ///
    /// - Parameters:
    ///   - positions: The positions that the other log has among the samples.
    ///   - lowest: The lowest position of the other log.
    mutating func receive(_ positions: [LogPosition], lowest: Int64) {
        let chains = Dictionary(positions.map { ($0.last, $0.chain) }) { first, _ in first }
        let width = foreignStart - commonEnd
        let count = min(width, Self.samplesMax)
        let indices = (0..<count).map { commonEnd + width * $0 / count }
        for index in indices {
            let position = known[index]
            if position.last < lowest {
                commonEnd = index + 1
            } else if chains[position.last] == position.chain {
                commonEnd = index + 1
                hasCommon = true
            } else {
                foreignStart = index
                break
            }
        }
    }
}
