import DequeModule

/// A bounded queue that serves its keys in turn: first in, first out for each key, and round robin
/// by cost between keys.
///
/// Each turn gives a key `quantum` of cost. An element that costs more is served as a whole, and
/// its key then skips as many turns as it exceeded (surplus round robin). A key keeps this debt
/// while it has no elements, until the debt is paid or the queue is empty, so that sending one
/// large element at a time gains nothing. The work of one `popFirst` is at most linear in the cost
/// served.
///
/// The bound is shared dynamically: a key may use at most ``Limits/share`` times the remaining
/// space. With the default share of 4 a single key gets 4/5 of the queue, two keys get 4/9 each,
/// and a new key always finds space.
///
/// Inlinable as a whole, and therefore public: other modules use it for every request with their
/// own key and element types, and unspecialized code would look up generic metadata at each step.
public struct FairQueue<Key: Hashable & Sendable, Element: Sendable>: Sendable {
    /// The limits of a queue.
    public struct Limits: Sendable, Hashable {
        /// The maximum number of waiting elements.
        public var count: Int
        /// The maximum total cost of waiting elements; a single element may exceed it.
        public var cost: Int
        /// The multiple of the remaining space that a key may use.
        public var share: Int
        /// The cost that one turn serves.
        public var quantum: Int

        /// Creates limits; each is at least 1.
        @inlinable public init(count: Int, cost: Int, share: Int = 4, quantum: Int = 65_536) {
            self.count = max(1, count)
            self.cost = max(1, cost)
            self.share = max(1, share)
            self.quantum = max(1, quantum)
        }
    }

    /// The reason why an element was rejected.
    public enum Rejection: Error, Sendable, Hashable {
        case full
        /// The key uses its share of the queue.
        case shareUsed
    }

    /// An element with its key and cost.
    public struct Entry: Sendable {
        /// The key of the element.
        public let key: Key
        /// The queued element.
        public let element: Element
        /// The cost of the element.
        public let cost: Int

        @inlinable init(key: Key, element: Element, cost: Int) {
            self.key = key
            self.element = element
            self.cost = cost
        }
    }

    /// The elements of one key.
    @usableFromInline struct Line: Sendable {
        @usableFromInline var key: Key
        @usableFromInline var entries = Deque<Entry>()
        /// The largest number of elements that waited at one time; `entries` has memory for them.
        @usableFromInline var longest = 0
        @usableFromInline var cost = 0
        /// The cost that may be served before the next key's turn; negative for a debt.
        @usableFromInline var credit = 0
        @usableFromInline var hasTurn = false
        @usableFromInline var isInRing = false

        @inlinable init(key: Key) { self.key = key }
    }

    @usableFromInline let limits: Limits
    /// The number of keys beyond which a key without elements is removed.
    @inlinable static var idleMax: Int { 1_024 }
    /// The number of keys beyond which a key without elements is removed despite its debt.
    @inlinable var debtorsMax: Int { max(limits.count, 2 * Self.idleMax) }
    /// The number of elements that an idle key keeps memory for.
    @inlinable static var idleCapacityMax: Int { 64 }
    @usableFromInline var lines: [Line] = []
    @usableFromInline var freeLines: [Int] = []
    @usableFromInline var lineOfKey: [Key: Int] = [:]
    /// The lines in the order of their turns: those with elements and those in debt.
    @usableFromInline var ring = Deque<Int>()

    @usableFromInline var waitingCount = 0
    @usableFromInline var waitingCost = 0

    /// Creates an empty queue.
    @inlinable public init(limits: Limits) {
        self.limits = limits
    }

    /// The number of waiting elements.
    @inlinable public var count: Int { waitingCount }

    /// The total cost of the waiting elements.
    @inlinable public var cost: Int { waitingCost }

    /// Appends an element to those of its key.
    ///
    /// - Parameter isShareBound: `false` for the gateway's own work, which may use all remaining
    ///   space.
    /// - Returns: `nil` on success. An empty queue accepts any element.
    @inlinable public mutating func append(
        _ element: Element, for key: Key, cost: Int, isShareBound: Bool = true
    ) -> Rejection? {
        let cost = max(0, cost)
        let known = lineOfKey[key]
        if count > 0 {
            guard count < limits.count, cost <= limits.cost - self.cost else { return .full }
            if isShareBound, let known, !lines[known].entries.isEmpty {
                // Both sides include the element itself, so that no key's share includes the last
                // place.
                guard lines[known].entries.count < shareOf(limits.count - count - 1),
                    saturatingSum(lines[known].cost, cost)
                        <= shareOf(limits.cost - self.cost - cost)
                else { return .shareUsed }
            }
        }
        let place = known ?? addLine(key)
        if !lines[place].isInRing {
            lines[place].isInRing = true
            ring.append(place)
        }
        lines[place].entries.append(Entry(key: key, element: element, cost: cost))
        lines[place].longest = max(lines[place].longest, lines[place].entries.count)
        lines[place].cost = saturatingSum(lines[place].cost, cost)
        waitingCount += 1
        waitingCost = saturatingSum(waitingCost, cost)
        return nil
    }

    /// Removes and returns the next element; `nil` when the queue is empty.
    @inlinable public mutating func popFirst() -> Entry? {
        guard count > 0 else { return nil }
        while let place = ring.first {
            if !lines[place].hasTurn {
                lines[place].credit += limits.quantum
                lines[place].hasTurn = lines[place].credit > 0
            }
            guard lines[place].hasTurn else {
                rotate()
                continue
            }
            guard let entry = lines[place].entries.popFirst() else {
                // The debt of the key is paid.
                removeFirstLine()
                continue
            }
            didServe(entry, from: place)
            return entry
        }
        return nil
    }

    @inlinable mutating func didServe(_ entry: Entry, from place: Int) {
        waitingCount -= 1
        if count == 0 {
            // An empty queue keeps no debts.
            while !ring.isEmpty { removeFirstLine() }
            waitingCost = 0
            return
        }
        waitingCost = max(0, waitingCost - entry.cost)
        lines[place].cost = max(0, lines[place].cost - entry.cost)
        // Elements without a cost use up a turn, too.
        lines[place].credit -= max(1, entry.cost)
        let isInDebt = lines[place].credit < 0
        if lines[place].entries.isEmpty, !isInDebt || lineOfKey.count > debtorsMax {
            removeFirstLine()
        } else if lines[place].credit <= 0 {
            rotate()
        }
    }

    @inlinable func shareOf(_ room: Int) -> Int {
        let (product, overflows) = room.multipliedReportingOverflow(by: limits.share)
        return overflows ? .max : product
    }

    @inlinable func saturatingSum(_ left: Int, _ right: Int) -> Int {
        let (sum, overflows) = left.addingReportingOverflow(right)
        return overflows ? .max : sum
    }

    @inlinable mutating func addLine(_ key: Key) -> Int {
        let place: Int
        if let free = freeLines.popLast() {
            lines[free] = Line(key: key)
            place = free
        } else {
            place = lines.count
            lines.append(Line(key: key))
        }
        lineOfKey[key] = place
        return place
    }

    @inlinable mutating func rotate() {
        guard let place = ring.popFirst() else { return }
        lines[place].hasTurn = false
        ring.append(place)
    }

    /// Removes the first line, which is empty, from the ring. Its key is kept unless there are too
    /// many, so that a key that comes and goes does not allocate each time.
    @inlinable mutating func removeFirstLine() {
        guard let place = ring.popFirst() else { return }
        lines[place].isInRing = false
        lines[place].hasTurn = false
        lines[place].credit = 0
        lines[place].cost = 0
        if lines[place].longest > Self.idleCapacityMax {
            lines[place].entries = []
            lines[place].longest = 0
        }
        if lineOfKey.count > Self.idleMax {
            lineOfKey[lines[place].key] = nil
            freeLines.append(place)
        }
    }
}
