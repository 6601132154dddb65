import Foundation

/// What a widget shows from one moment on. It is drawn when its timeline was built; what is shown,
/// also after a restart, is the drawing.
public protocol TimelineEntry: Sendable {
    /// When the widget begins to show this entry.
    var date: Date { get }
    /// How much it matters then, compared with the other entries of this and other timelines.
    var relevance: TimelineEntryRelevance? { get }
}

extension TimelineEntry {
    /// No statement about relevance.
    public var relevance: TimelineEntryRelevance? { nil }
}

/// How much an entry matters, on a scale the app keeps the same across its timelines.
public struct TimelineEntryRelevance: Sendable, Hashable, Codable {
    /// Larger matters more; zero and below means not relevant.
    public var score: Float
    /// How long it matters after the entry's date, in seconds; 0 until the next entry.
    public var duration: TimeInterval

    /// A relevance.
    public init(score: Float, duration: TimeInterval = 0) {
        self.score = score
        self.duration = duration
    }
}

/// The earliest moment at which a provider is asked for its next timeline. It is no promise: the
/// gateway's notifications, and the app itself, may ask sooner.
public struct TimelineReloadPolicy: Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        case atEnd
        case after(Date)
        case never
    }

    let kind: Kind

    /// After the date of the last entry.
    public static let atEnd = TimelineReloadPolicy(kind: .atEnd)
    /// Only when a notification or the app asks.
    public static let never = TimelineReloadPolicy(kind: .never)

    /// Not before `date`, which may lie before or after the last entry.
    public static func after(_ date: Date) -> TimelineReloadPolicy {
        TimelineReloadPolicy(kind: .after(date))
    }

    /// When the policy asks for the next timeline of entries that end with `last`; `nil` for
    /// never, and for a timeline without entries that is to be reloaded at its end.
    func reloadDate(last: Date?) -> Date? {
        switch kind {
        case .atEnd: last
        case .after(let date): date
        case .never: nil
        }
    }
}

/// What a provider built: entries in the order of their dates, and when to ask again.
public struct Timeline<EntryType: TimelineEntry>: Sendable {
    /// The entries.
    public let entries: [EntryType]
    /// When to ask again.
    public let policy: TimelineReloadPolicy

    /// A timeline.
    public init(entries: [EntryType], policy: TimelineReloadPolicy) {
        self.entries = entries
        self.policy = policy
    }
}
