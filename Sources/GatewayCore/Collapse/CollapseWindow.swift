import DequeModule
import HeapModule
import WidgetModel

/// Merges the notifications of each key. A change to a key without an open window is notified at
/// once and opens one, if there is room. Later changes wait and are notified together at its end.
///
/// A change never waits longer than its key's window. The watermark stays below ``oldestWaiting``.
package struct CollapseWindow {
    /// A key, identified by its rule and real values.
    package struct Key: Hashable {
        let rule: Int
        package let values: BoundValues

        /// Returns whether the key comes first in an order that depends only on the keys.
        func precedes(_ other: Key) -> Bool {
            rule != other.rule
                ? rule < other.rule : values.bytes.lexicographicallyPrecedes(other.values.bytes)
        }
    }

    /// The decision for a change's key.
    package enum Verdict: Equatable {
        /// Notify immediately.
        case fire
        /// Wait, as the first, for the end of the window, which will notify.
        case begin
        /// Wait with changes that wait already.
        case wait
    }

    fileprivate struct Window {
        var rule: Int
        var end: Int64
        var duration: Int64
        /// The sequences of the first and the latest waiting change; 0 for none.
        var first: UInt64 = 0
        /// The time of acceptance of the first waiting change, ms since 1970.
        var acceptedAt: Int64 = 0
        var latest: UInt64 = 0
        /// The highest urgency of the waiting changes.
        var urgency = Urgency.veryLow

        static let closed = Window(rule: -1, end: 0, duration: 0)
    }

    private struct Ending: Comparable {
        let end: Int64
        let number: Int

        static func < (left: Ending, right: Ending) -> Bool { left.end < right.end }
        static func == (left: Ending, right: Ending) -> Bool { left.end == right.end }
    }

    private let keysMax: Int
    /// The open windows. Keys of different rules may have equal values or, by a collision, hashes.
    private var windows = KeyTable<Window>()
    /// An entry for each open window, by the number of its key.
    private var endings = Heap<Ending>()
    /// The waiting keys by the sequence at which they began to wait, ascending. Entries whose key
    /// no longer waits since that sequence are skipped when they reach the front.
    private var waitingSince = Deque<(sequence: UInt64, number: Int)>()

    package init(keysMax: Int) {
        self.keysMax = keysMax
    }

    /// The time at which the next window ends, ms on the caller's clock; `nil` when none is open.
    package var nextEnd: Int64? { endings.min?.end }

    package var count: Int { windows.count }

    /// The sequence of the oldest waiting change.
    package var oldestWaiting: UInt64? { waitingSince.first?.sequence }

    /// Returns a key's open window: the first change that waits for its end, if any, and the time
    /// of the end, ms on the caller's clock.
    func window(_ key: EncodedKey, rule: Int) -> (firstWaiting: UInt64?, end: Int64)? {
        windows.find(key, where: { $0.rule == rule }).map { number in
            let first = windows[number].first
            return (first == 0 ? nil : first, windows[number].end)
        }
    }

    /// Decides a change at `sequence` to `key`, whose rule collapses for `duration` ms.
    package mutating func change(
        _ key: Key, at sequence: UInt64, duration: Int64, now: Int64
    ) -> Verdict {
        key.values.withEncoded {
            change(
                $0, rule: key.rule, at: sequence, acceptedAt: 0, duration: duration, now: now)
        }
    }

    /// Decides a change at `sequence`, accepted at some time (ms since 1970), to a key of `rule`,
    /// which collapses for `duration` ms.
    mutating func change(
        _ key: EncodedKey, rule: Int, at sequence: UInt64, acceptedAt: Int64,
        urgency: Urgency = .normal, duration: Int64, now: Int64
    ) -> Verdict {
        guard duration > 0 else { return .fire }
        if let number = windows.find(key, where: { $0.rule == rule }) {
            if urgency.rank > windows[number].urgency.rank { windows[number].urgency = urgency }
            if windows[number].first != 0 {
                windows[number].latest = sequence
                return .wait
            }
            if now < windows[number].end {
                windows[number].first = sequence
                windows[number].acceptedAt = acceptedAt
                windows[number].latest = sequence
                waitingSince.append((sequence, number))
                return .begin
            }
            // The end of the window has passed but was not processed yet.
            windows[number].duration = duration
            open(number, now: now)
        } else if windows.count < keysMax {
            open(windows.add(key, Window(rule: rule, end: 0, duration: duration)), now: now)
        }
        return .fire
    }

    /// A key with waiting changes, the sequence of the latest, the time of acceptance of the first,
    /// ms since 1970, and their highest urgency.
    package typealias Due = (key: Key, sequence: UInt64, acceptedAt: Int64, urgency: Urgency)

    /// Ends every window whose time has passed. Returns the keys with waiting changes, which must
    /// be notified now and open a new window.
    package mutating func end(now: Int64) -> [Due] {
        var due: [Due] = []
        while let ending = endings.min, ending.end <= now {
            endings.removeMin()
            let number = ending.number
            guard windows.isKey(number), windows[number].end == ending.end else { continue }
            guard windows[number].first != 0 else {
                windows.remove(number, leaving: .closed)
                continue
            }
            due.append(self.due(number))
            open(number, now: now)
        }
        skipEnded()
        return due
    }

    /// Ends every window at once, except those of rules that the new catalog keeps.
    ///
    /// - Parameter slot: Returns the new slot of a rule that is kept; `nil` for any other rule.
    package mutating func endAll(keeping slot: (_ rule: Int) -> Int? = { _ in nil }) -> [Due] {
        var due: [Due] = []
        for number in Array(windows.numbers) {
            if let slot = slot(windows[number].rule) {
                windows[number].rule = slot
                continue
            }
            if windows[number].first != 0 {
                due.append(self.due(number))
            }
            windows.remove(number, leaving: .closed)
        }
        endings = Heap(windows.numbers.map { Ending(end: windows[$0].end, number: $0) })
        skipEnded()
        return due.sorted { $0.1 != $1.1 ? $0.1 < $1.1 : $0.0.precedes($1.0) }
    }

    private func due(_ number: Int) -> Due {
        let window = windows[number]
        let key = Key(
            rule: window.rule,
            values: BoundValues(
                bytes: Array(windows.values(of: number)), hash: windows.hash(of: number)))
        return (key, window.latest, window.acceptedAt, window.urgency)
    }

    private mutating func open(_ number: Int, now: Int64) {
        let (sum, overflow) = now.addingReportingOverflow(windows[number].duration)
        let end = overflow ? Int64.max : sum
        windows[number].end = end
        windows[number].first = 0
        windows[number].urgency = .veryLow
        endings.insert(Ending(end: end, number: number))
    }

    private mutating func skipEnded() {
        // A key with a long window at the front must not let finished entries accumulate behind it.
        if waitingSince.count > 2 * windows.count + 64 {
            waitingSince.removeAll { !windows.isWaiting($0.number, since: $0.sequence) }
        }
        while let front = waitingSince.first,
            !windows.isWaiting(front.number, since: front.sequence)
        {
            waitingSince.removeFirst()
        }
    }
}

extension KeyTable<CollapseWindow.Window> {
    fileprivate func isWaiting(_ number: Int, since sequence: UInt64) -> Bool {
        isKey(number) && self[number].first == sequence
    }
}
