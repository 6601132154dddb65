import Foundation

/// The content of a widget from one date on. It is drawn when its timeline is built; the drawing is
/// shown, also after a restart.
public protocol TimelineEntry: Sendable {
    /// The date on which the widget begins to show this entry.
    var date: Date { get }
    /// The relevance of the entry from that date, compared with other entries of this and other
    /// timelines.
    var relevance: TimelineEntryRelevance? { get }
}

extension TimelineEntry {
    /// Returns `nil`: the entry does not state its relevance.
    public var relevance: TimelineEntryRelevance? { nil }
}

/// The relevance of an entry, on a scale that the app uses consistently across its timelines.
public struct TimelineEntryRelevance: Sendable, Hashable, Codable {
    /// The score; larger is more relevant, and zero or less is not relevant.
    public var score: Float
    /// The duration of the relevance after the entry's date, seconds; 0 for until the next entry.
    public var duration: TimeInterval

    /// Creates a relevance.
    public init(score: Float, duration: TimeInterval = 0) {
        self.score = score
        self.duration = duration
    }
}

/// The earliest time at which a provider is asked for its next timeline. It is not a promise:
/// notifications and the app may trigger a reload sooner.
public enum TimelineReloadPolicy: Sendable, Equatable {
    /// Reload after the date of the last entry.
    case atEnd
    /// Reload at this date or later; it may be before or after the last entry.
    case after(Date)
    /// Reload only for a notification or a request of the app.
    case never

    /// Returns the date at which the policy asks for the next timeline, where `last` is the date of
    /// the last entry; `nil` for never, and for an empty timeline with the policy ``atEnd``.
    package func reloadDate(last: Date?) -> Date? {
        switch self {
        case .atEnd: last
        case .after(let date): date
        case .never: nil
        }
    }
}

/// The result of a provider: entries in the order of their dates, and a reload policy.
public struct Timeline<EntryType: TimelineEntry>: Sendable {
    /// The entries of the timeline.
    public let entries: [EntryType]
    /// The time at which to ask for the next timeline.
    public let policy: TimelineReloadPolicy

    /// Creates a timeline.
    public init(entries: [EntryType], policy: TimelineReloadPolicy) {
        self.entries = entries
        self.policy = policy
    }
}
