import Foundation

/// Decides which entry of a timeline is shown at each date: the latest that has begun. Of entries
/// with the same date the one further back in the timeline is the later (article "Creating a widget
/// extension", "Provide timeline entries").
///
/// The shown entry depends only on the date: when the wall clock jumps forward or back, the next
/// call answers as if the clock had never shown another time. A caller that waits for
/// ``nextChange(after:)`` must call it again after a jump.
public struct EntrySequence: Sendable, Equatable {
    /// The spacing between entries that WidgetKit asks for, seconds: about five minutes (Apple,
    /// Keeping a widget up to date). Closer entries are shown all the same.
    public static let advisedSpacing: TimeInterval = 300

    private struct Change: Sendable, Equatable {
        let date: Date
        let index: Int
    }

    /// The entries that are shown at all, each with its date; ascending.
    private let changes: [Change]

    /// Creates the sequence of entries with these dates.
    ///
    /// - Parameter dates: The entries' dates, in the order of the timeline. An entry whose date is
    ///   not finite is never shown.
    public init(dates: [Date]) {
        let entries = dates.enumerated()
            .filter { $0.element.timeIntervalSinceReferenceDate.isFinite }
            .sorted { ($0.element, $0.offset) < ($1.element, $1.offset) }
        var changes: [Change] = []
        for (index, date) in entries {
            if changes.last?.date == date { changes.removeLast() }
            changes.append(Change(date: date, index: index))
        }
        self.changes = changes
    }

    /// The shortest time between two entries, seconds; `nil` for fewer than two.
    public var shortestSpacing: TimeInterval? {
        zip(changes, changes.dropFirst()).map { $1.date.timeIntervalSince($0.date) }.min()
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
    public init(_ timeline: AnyTimeline) { self.init(dates: timeline.entries.map(\.date)) }
}
