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

    private struct Window {
        var end: Int64
        let duration: Int64
        /// Sequence of the first and the latest change that wait.
        var waiting: (first: UInt64, latest: UInt64)?
    }

    private struct Ending: Comparable {
        let end: Int64
        let key: Key

        static func < (left: Ending, right: Ending) -> Bool { left.end < right.end }
        static func == (left: Ending, right: Ending) -> Bool { left.end == right.end }
    }

    private let keysMax: Int
    private var windows: [Key: Window] = [:]
    /// One entry for each open window.
    private var endings = Heap<Ending>()
    /// Waiting keys by the sequence that made them wait, which only grows. Entries whose key no
    /// longer waits since that sequence are skipped when they come to the front.
    private var waitingSince = Deque<(sequence: UInt64, key: Key)>()

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

    /// A change at `sequence` hit `key`, whose rule collapses for `duration` milliseconds.
    package mutating func change(
        _ key: Key, at sequence: UInt64, duration: Int64, now: Int64
    ) -> Verdict {
        guard duration > 0 else { return .fire }
        if let index = windows.index(forKey: key) {
            if windows.values[index].waiting != nil {
                windows.values[index].waiting?.latest = sequence
                return .wait
            }
            if now < windows.values[index].end {
                windows.values[index].waiting = (sequence, sequence)
                waitingSince.append((sequence, key))
                return .wait
            }
        } else if windows.count >= keysMax {
            return .fire
        }
        open(key, duration: duration, now: now)
        return .fire
    }

    /// Ends every window that is over. Keys on which changes waited are to be notified now, with
    /// the latest of them, and open a new window.
    package mutating func end(now: Int64) -> [(key: Key, sequence: UInt64)] {
        var due: [(Key, UInt64)] = []
        while let ending = endings.min, ending.end <= now {
            endings.removeMin()
            guard let window = windows[ending.key], window.end == ending.end else { continue }
            guard let waiting = window.waiting else {
                windows[ending.key] = nil
                continue
            }
            due.append((ending.key, waiting.latest))
            open(ending.key, duration: window.duration, now: now)
        }
        skipEnded()
        return due
    }

    /// Ends every window at once, as before a catalog is replaced.
    package mutating func endAll() -> [(key: Key, sequence: UInt64)] {
        let due = windows.compactMap { key, window in window.waiting.map { (key, $0.latest) } }
            .sorted {
                // Dictionaries have no order of their own; the same inputs give the same output.
                $0.1 != $1.1 ? $0.1 < $1.1 : $0.0.precedes($1.0)
            }
        self = CollapseWindow(keysMax: keysMax)
        return due
    }

    private mutating func open(_ key: Key, duration: Int64, now: Int64) {
        let (sum, overflow) = now.addingReportingOverflow(duration)
        let end = overflow ? Int64.max : sum
        windows[key] = Window(end: end, duration: duration, waiting: nil)
        endings.insert(Ending(end: end, key: key))
    }

    private mutating func skipEnded() {
        // One key with a long window at the front must not let the others' past pile up behind it.
        if waitingSince.count > 2 * windows.count + 64 {
            waitingSince.removeAll { windows[$0.key]?.waiting?.first != $0.sequence }
        }
        while let front = waitingSince.first, windows[front.key]?.waiting?.first != front.sequence {
            waitingSince.removeFirst()
        }
    }
}
