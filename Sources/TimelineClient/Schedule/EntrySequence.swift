import Foundation

/// Which entry of a timeline is shown when.
///
/// What it promises, for dates in any order, with duplicates or none at all:
/// - No entry is shown before its date.
/// - Two changes are never closer than the spacing. An entry that begins sooner is shown when the
///   spacing is over, unless a later one has begun by then: that one is shown in its place.
/// - When an entry comes to be shown it is the latest that has begun, and so the last entry of all
///   is shown in the end. Of entries with the same date the one further back in the timeline is
///   the later.
///
/// What is shown is a function of the date alone: when the wall clock jumps, forth or back, the
/// next question is answered as if the clock had always stood there. Whoever waits for
/// ``nextChange(after:)`` asks again after a jump.
public struct EntrySequence: Sendable, Equatable {
    /// Seconds that entries are kept apart unless told otherwise: WidgetKit asks for about five
    /// minutes (Apple, Keeping a widget up to date).
    public static let defaultSpacing: TimeInterval = 300

    private struct Change: Sendable, Equatable {
        let date: Date
        let index: Int
    }

    /// Each entry that is ever shown, by the moment it is shown from; ascending.
    private let changes: [Change]

    /// The sequence of entries with these dates.
    ///
    /// - Parameters:
    ///   - dates: The entries' dates, in the order of the timeline. One that is not finite never
    ///     comes.
    ///   - spacing: Seconds between two changes at least. Negative or not a number counts as 0,
    ///     more than 366 days as these.
    public init(dates: [Date], spacing: TimeInterval = Self.defaultSpacing) {
        let spacing = spacing.asWait
        let entries = dates.enumerated()
            .filter { $0.element.timeIntervalSinceReferenceDate.isFinite }
            .sorted { ($0.element, $0.offset) < ($1.element, $1.offset) }
        var changes: [Change] = []
        var next = entries.startIndex
        while next < entries.endIndex {
            var moment = entries[next].element
            if let last = changes.last { moment = max(moment, last.date + spacing) }
            // All that have begun by then, for only the last of them is shown.
            while next < entries.endIndex, entries[next].element <= moment { next += 1 }
            changes.append(Change(date: moment, index: entries[next - 1].offset))
        }
        self.changes = changes
    }

    /// The position in the timeline of the entry shown at `date`; `nil` while none has begun, and
    /// for a timeline without entries: the widget then goes on to show what it shows.
    public func index(at date: Date) -> Int? {
        let begun = count(until: date)
        return begun > 0 ? changes[begun - 1].index : nil
    }

    /// The first moment after `date` from which another entry is shown; `nil` for never.
    public func nextChange(after date: Date) -> Date? {
        let begun = count(until: date)
        return begun < changes.count ? changes[begun].date : nil
    }

    /// How many changes have come by `date`.
    private func count(until date: Date) -> Int {
        var low = 0
        var high = changes.count
        while low < high {
            let middle = low + (high - low) / 2
            if changes[middle].date <= date { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension EntrySequence {
    /// The sequence of a timeline's entries.
    public init(_ timeline: AnyTimeline, spacing: TimeInterval = Self.defaultSpacing) {
        self.init(dates: timeline.entries.map(\.date), spacing: spacing)
    }
}
