import DequeModule
import HeapModule

/// Merges notifications: of one key at most one goes out in each window; the first at once, the
/// rest merged into one when the window ends.
///
/// A change is never held longer than its key's window, and ``oldestWaiting`` keeps the watermark
/// below every change that waits.
package struct CollapseWindow {
    /// A key, by its real values.
    package struct Key: Hashable {
        let rule: Int
        let values: BoundValues

        /// An order that depends on nothing but the key.
        func precedes(_ other: Key) -> Bool {
            rule != other.rule
                ? rule < other.rule : values.bytes.lexicographicallyPrecedes(other.values.bytes)
        }
    }

    /// What to do with a change's key.
    package enum Verdict: Equatable {
        /// Notify now.
        case fire
        /// Wait: the window's end will notify.
        case wait
    }

    fileprivate struct Window {
        let rule: Int
        var end: Int64
        var duration: Int64
        /// Sequence of the first and the latest change that wait; 0 for none.
        var first: UInt64 = 0
        /// When that first one was accepted, in milliseconds since 1970.
        var acceptedAt: Int64 = 0
        var latest: UInt64 = 0

        static let closed = Window(rule: -1, end: 0, duration: 0)
    }

    private struct Ending: Comparable {
        let end: Int64
        let number: Int

        static func < (left: Ending, right: Ending) -> Bool { left.end < right.end }
        static func == (left: Ending, right: Ending) -> Bool { left.end == right.end }
    }

    private let keysMax: Int
    /// Open windows. Keys of two rules may have the same values, and by a collision the same hash.
    private var windows = KeyTable<Window>()
    /// One entry for each open window, by the number of its key.
    private var endings = Heap<Ending>()
    /// Waiting keys by the sequence that made them wait, which only grows. Entries whose key no
    /// longer waits since that sequence are skipped when they come to the front.
    private var waitingSince = Deque<(sequence: UInt64, number: Int)>()

    /// No windows are open.
    package init(keysMax: Int) {
        self.keysMax = keysMax
    }

    /// When the next window ends, in the caller's milliseconds; `nil` when none is open.
    package var nextEnd: Int64? { endings.min?.end }

    /// How many windows are open.
    package var count: Int { windows.count }

    /// The sequence of the oldest change that waits.
    package var oldestWaiting: UInt64? { waitingSince.first?.sequence }

    /// A key's window that is open: the first change that waits for its end, if one does, and when
    /// that is, in the caller's milliseconds.
    func window(_ key: EncodedKey, rule: Int) -> (firstWaiting: UInt64?, end: Int64)? {
        windows.find(key, where: { $0.rule == rule }).map { number in
            let first = windows[number].first
            return (first == 0 ? nil : first, windows[number].end)
        }
    }

    /// A change at `sequence` hit `key`, whose rule collapses for `duration` milliseconds.
    package mutating func change(
        _ key: Key, at sequence: UInt64, duration: Int64, now: Int64
    ) -> Verdict {
        key.values.withEncoded {
            change(
                $0, rule: key.rule, at: sequence, acceptedAt: 0, duration: duration, now: now)
        }
    }

    /// A change at `sequence`, accepted at some millisecond since 1970, hit a key of `rule`, which
    /// collapses for `duration` milliseconds.
    mutating func change(
        _ key: EncodedKey, rule: Int, at sequence: UInt64, acceptedAt: Int64, duration: Int64,
        now: Int64
    ) -> Verdict {
        guard duration > 0 else { return .fire }
        if let number = windows.find(key, where: { $0.rule == rule }) {
            if windows[number].first != 0 {
                windows[number].latest = sequence
                return .wait
            }
            if now < windows[number].end {
                windows[number].first = sequence
                windows[number].acceptedAt = acceptedAt
                windows[number].latest = sequence
                waitingSince.append((sequence, number))
                return .wait
            }
            // Its end is due, but was not asked for yet.
            windows[number].duration = duration
            open(number, now: now)
        } else if windows.count < keysMax {
            open(windows.add(key, Window(rule: rule, end: 0, duration: duration)), now: now)
        }
        return .fire
    }

    /// A key on which changes waited, the latest of them, and when the first was accepted, in
    /// milliseconds since 1970.
    package typealias Due = (key: Key, sequence: UInt64, acceptedAt: Int64)

    /// Ends every window that is over. Keys on which changes waited are to be notified now, and
    /// open a new window.
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
            due.append((key(number), windows[number].latest, windows[number].acceptedAt))
            open(number, now: now)
        }
        skipEnded()
        return due
    }

    /// Ends every window at once, as before a catalog is replaced.
    package mutating func endAll() -> [Due] {
        let due = windows.numbers.filter { windows[$0].first != 0 }
            .map { (key($0), windows[$0].latest, windows[$0].acceptedAt) }
            .sorted { $0.1 != $1.1 ? $0.1 < $1.1 : $0.0.precedes($1.0) }
        self = CollapseWindow(keysMax: keysMax)
        return due
    }

    private func key(_ number: Int) -> Key {
        Key(
            rule: windows[number].rule,
            values: BoundValues(
                bytes: Array(windows.values(of: number)), hash: windows.hash(of: number)))
    }

    private mutating func open(_ number: Int, now: Int64) {
        let (sum, overflow) = now.addingReportingOverflow(windows[number].duration)
        let end = overflow ? Int64.max : sum
        windows[number].end = end
        windows[number].first = 0
        endings.insert(Ending(end: end, number: number))
    }

    private mutating func skipEnded() {
        // One key with a long window at the front must not let the others' past pile up behind it.
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
