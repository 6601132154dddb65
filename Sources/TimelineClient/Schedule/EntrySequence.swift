import Foundation

/// Decides which entry of a timeline is shown at each date.
///
/// It guarantees for dates in any order, with duplicates or without any entry:
/// - No entry is shown before its date.
/// - Two changes are never closer than the spacing. An entry that begins sooner is shown after the
///   spacing, unless a later one has begun by then, which is shown instead.
/// - At each change the latest entry that has begun is shown, so the last entry of all is always
///   shown eventually. Of entries with the same date the one further back in the timeline is the
///   later.
///
/// The shown entry depends only on the date: when the wall clock jumps forward or back, the next
/// call answers as if the clock had never shown another time. A caller that waits for
/// ``nextChange(after:)`` must call it again after a jump.
public struct EntrySequence: Sendable, Equatable {
    /// The default spacing between entries, seconds. WidgetKit asks for about five minutes (Apple,
    /// Keeping a widget up to date).
    public static let defaultSpacing: TimeInterval = 300

    private struct Change: Sendable, Equatable {
        let date: Date
        let index: Int
    }

    /// The entries that are shown at all, each with the date of the change to it; ascending.
    private let changes: [Change]

    /// Creates the sequence of entries with these dates.
    ///
    /// - Parameters:
    ///   - dates: The entries' dates, in the order of the timeline. An entry whose date is not
    ///     finite is never shown.
    ///   - spacing: The shortest time between two changes, seconds. A negative value or NaN counts
    ///     as 0, a value over 366 days as 366 days.
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
            // Skips all entries that have begun by then, because only the last of them is shown.
            while next < entries.endIndex, entries[next].element <= moment { next += 1 }
            changes.append(Change(date: moment, index: entries[next - 1].offset))
        }
        self.changes = changes
    }

    /// Returns the position of the entry shown at `date`; `nil` before the first entry, and for an
    /// empty timeline. The widget then keeps its previous content.
    public func index(at date: Date) -> Int? {
        let begun = count(until: date)
        return begun > 0 ? changes[begun - 1].index : nil
    }

    /// Returns the first date after `date` at which the shown entry changes; `nil` for never.
    public func nextChange(after date: Date) -> Date? {
        let begun = count(until: date)
        return begun < changes.count ? changes[begun].date : nil
    }

    /// Returns the number of changes up to `date`.
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
    /// Creates the sequence of a timeline's entries.
    public init(_ timeline: AnyTimeline, spacing: TimeInterval = Self.defaultSpacing) {
        self.init(dates: timeline.entries.map(\.date), spacing: spacing)
    }
}
