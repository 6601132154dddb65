import Foundation
import WidgetViews

/// A timeline with its entry type erased, as the runtime handles it.
public struct AnyTimeline: Sendable {
    /// The entries, in the provider's order; each is of the provider's entry type.
    public let entries: [any TimelineEntry]
    /// The date at which the policy asks for the next one; `nil` for never.
    public let reloadDate: Date?

    init(entries: [any TimelineEntry], reloadDate: Date?) {
        self.entries = entries
        self.reloadDate = reloadDate
    }

    init(_ timeline: Timeline<some TimelineEntry>) {
        entries = timeline.entries
        reloadDate = timeline.policy.reloadDate(last: timeline.entries.map(\.date).max())
    }
}
