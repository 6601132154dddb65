import Foundation

/// A timeline of any entry type, as the runtime keeps it.
public struct AnyTimeline: Sendable {
    /// The entries, in the provider's order; each is of the provider's entry type.
    public let entries: [any TimelineEntry]
    /// When the policy asks for the next one; `nil` for never.
    public let reloadDate: Date?

    init(entries: [any TimelineEntry], reloadDate: Date?) {
        self.entries = entries
        self.reloadDate = reloadDate
    }

    init(_ timeline: Timeline<some TimelineEntry>) {
        entries = timeline.entries
        reloadDate = timeline.policy.reloadDate(last: timeline.entries.map(\.date).max())
    }

    /// The entry to show at `date`, as ``EntrySequence`` says; `nil` while none has begun.
    public func entry(at date: Date) -> (any TimelineEntry)? {
        EntrySequence(self).index(at: date).map { entries[$0] }
    }
}
