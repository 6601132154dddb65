import DequeModule

/// A bounded queue that serves its keys in turn: first in, first out for each key, and round robin
/// by cost between keys.
///
/// Each turn gives a key `quantum` of cost. An element that costs more is served whole, and its key
/// passes as many turns as it took too much (surplus round robin). A key keeps that debt while it
/// has nothing waiting, until it is paid or the queue is empty, so that sending one large element
/// at a time gains nothing. The work of one `popFirst` is at most linear in the cost served.
///
/// The bound is shared dynamically: a key may hold at most ``Limits/share`` times the room that is
/// left. One key alone gets 4/5 of the queue with the default share of 4, two keys get 4/9 each,
/// and a key that comes last always finds room.
package struct FairQueue<Key: Hashable & Sendable, Element: Sendable>: Sendable {
    /// The bounds of a queue.
    package struct Limits: Sendable, Hashable {
        /// Elements that wait at most.
        package var count: Int
        /// The cost that all waiting elements have together at most; a single element may have more.
        package var cost: Int
        /// A key may hold this many times the room that is left.
        package var share: Int
        /// The cost that one turn serves.
        package var quantum: Int

        /// Creates bounds; each is at least 1.
        package init(count: Int, cost: Int, share: Int = 4, quantum: Int = 65_536) {
            self.count = max(1, count)
            self.cost = max(1, cost)
            self.share = max(1, share)
            self.quantum = max(1, quantum)
        }
    }

    /// The reason why an element was not taken.
    package enum Refusal: Error, Sendable, Hashable {
        /// The queue is full.
        case full
        /// The key holds its share of the queue.
        case shareUsed
    }

    /// An element, its key and its cost.
    package struct Entry: Sendable {
        /// The key it was queued for.
        package let key: Key
        /// The queued element.
        package let element: Element
        /// The cost it was queued with.
        package let cost: Int
    }

    /// The elements of one key.
    private struct Line: Sendable {
        var key: Key
        var entries = Deque<Entry>()
        var cost = 0
        /// Cost that may be served before the next key has its turn; negative for a debt.
        var credit = 0
        var hasTurn = false
    }

    private let limits: Limits
    /// Keys beyond which a key that has nothing waiting is forgotten with its debt.
    private var debtorsMax: Int { max(limits.count, 1_024) }
    private var lines: [Line] = []
    private var freeLines: [Int] = []
    private var lineOfKey: [Key: Int] = [:]
    /// Lines in the order of their turns; those in debt stay though they are empty.
    private var ring = Deque<Int>()

    /// The number of elements that wait.
    package private(set) var count = 0
    /// The cost of all elements that wait.
    package private(set) var cost = 0

    /// An empty queue.
    package init(limits: Limits) {
        self.limits = limits
    }

    /// Whether nothing waits.
    package var isEmpty: Bool { count == 0 }

    /// The number of elements that wait for a key.
    package func count(of key: Key) -> Int {
        lineOfKey[key].map { lines[$0].entries.count } ?? 0
    }

    /// Appends an element to those of its key.
    ///
    /// - Parameter isShareBound: `false` for the gateway's own work, which may use all the room.
    /// - Returns: `nil` when it was taken. An empty queue takes whatever it is given.
    package mutating func append(
        _ element: Element, for key: Key, cost: Int, isShareBound: Bool = true
    ) -> Refusal? {
        let cost = max(0, cost)
        let known = lineOfKey[key]
        if count > 0 {
            guard count < limits.count, cost <= limits.cost - self.cost else { return .full }
            if isShareBound, let known, !lines[known].entries.isEmpty {
                // Both sides include the element itself, so that no lane's share is the last place.
                guard lines[known].entries.count < shareOf(limits.count - count - 1),
                    saturatingSum(lines[known].cost, cost)
                        <= shareOf(limits.cost - self.cost - cost)
                else { return .shareUsed }
            }
        }
        let place = known ?? addLine(key)
        lines[place].entries.append(Entry(key: key, element: element, cost: cost))
        lines[place].cost = saturatingSum(lines[place].cost, cost)
        count += 1
        self.cost = saturatingSum(self.cost, cost)
        return nil
    }

    /// Removes and returns the element whose turn it is; `nil` when nothing waits.
    package mutating func popFirst() -> Entry? {
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
                // Its debt is paid.
                removeFirstLine()
                continue
            }
            didServe(entry, from: place)
            return entry
        }
        return nil
    }

    private mutating func didServe(_ entry: Entry, from place: Int) {
        count -= 1
        if count == 0 {
            // An empty queue owes no lane a turn.
            reset()
            return
        }
        cost = max(0, cost - entry.cost)
        lines[place].cost = max(0, lines[place].cost - entry.cost)
        // Elements without a cost use up a turn as well.
        lines[place].credit -= max(1, entry.cost)
        let isInDebt = lines[place].credit < 0
        if lines[place].entries.isEmpty, !isInDebt || lineOfKey.count > debtorsMax {
            removeFirstLine()
        } else if lines[place].credit <= 0 {
            rotate()
        }
    }

    private func shareOf(_ room: Int) -> Int {
        let (product, overflows) = room.multipliedReportingOverflow(by: limits.share)
        return overflows ? .max : product
    }

    private func saturatingSum(_ left: Int, _ right: Int) -> Int {
        let (sum, overflows) = left.addingReportingOverflow(right)
        return overflows ? .max : sum
    }

    private mutating func addLine(_ key: Key) -> Int {
        let place: Int
        if let free = freeLines.popLast() {
            lines[free] = Line(key: key)
            place = free
        } else {
            place = lines.count
            lines.append(Line(key: key))
        }
        lineOfKey[key] = place
        ring.append(place)
        return place
    }

    private mutating func rotate() {
        guard let place = ring.popFirst() else { return }
        lines[place].hasTurn = false
        ring.append(place)
    }

    private mutating func removeFirstLine() {
        guard let place = ring.popFirst() else { return }
        lineOfKey[lines[place].key] = nil
        lines[place].entries = []
        freeLines.append(place)
    }

    private mutating func reset() {
        lines.removeAll(keepingCapacity: true)
        freeLines.removeAll(keepingCapacity: true)
        lineOfKey.removeAll(keepingCapacity: true)
        ring = []
        cost = 0
    }
}
