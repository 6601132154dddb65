import Foundation

/// The values of a Live Activity that never change, and the type of its content, which does.
public protocol ActivityAttributes: Codable, Sendable {
    /// The content that changes.
    associatedtype ContentState: Codable & Hashable & Sendable
}

/// The content of a Live Activity from a moment on.
public struct ActivityContent<State: Codable & Hashable & Sendable>: Sendable, Hashable {
    /// The values that are shown.
    public var state: State
    /// The date from which the content is out of date; `nil` for never.
    public var staleDate: Date?
    /// The place among several activities of the app: the highest score comes first.
    public var relevanceScore: Double

    /// Creates a content.
    public init(state: State, staleDate: Date?, relevanceScore: Double = 0) {
        (self.state, self.staleDate, self.relevanceScore) = (state, staleDate, relevanceScore)
    }
}

/// The state of a Live Activity: it is updated while it is active or stale, and shown until it is
/// dismissed. Here none is pending.
public enum ActivityState: String, Sendable, Hashable, Codable {
    case pending, active, stale, ended, dismissed
}

/// When an ended Live Activity is removed: four hours after its end at the latest.
public struct ActivityUIDismissalPolicy: Sendable, Hashable {
    /// The date of the removal; `nil` for as late as possible.
    package let date: Date?

    /// As late as possible.
    public static let `default` = ActivityUIDismissalPolicy(date: nil)
    /// At once.
    public static let immediate = ActivityUIDismissalPolicy(date: .distantPast)

    /// At a date.
    public static func after(_ date: Date) -> ActivityUIDismissalPolicy { .init(date: date) }
}

/// The way in which a Live Activity is updated from outside of its app.
public struct PushType: Sendable, Hashable {
    /// The broadcast channel; `nil` for a token of the activity's own.
    package let channelID: String?

    /// By its own push token.
    public static let token = PushType(channelID: nil)

    /// By a broadcast channel.
    public static func channel(_ id: String) -> PushType { PushType(channelID: id) }
}

/// What tells a person of an update of a Live Activity. No system here does, so it is not kept.
public struct AlertConfiguration: Sendable {
    /// The sound of an alert.
    public enum AlertSound: Sendable, Hashable {
        case `default`
        case named(String)
    }

    /// Creates an alert.
    public init(
        title: LocalizedStringResource, body: LocalizedStringResource, sound: AlertSound
    ) {}
}

/// The reason why a Live Activity is not started: attributes and content have more than 4,096
/// bytes, the app has as many as it may have, or no client and no extension are known here.
public enum ActivityAuthorizationError: Error, Sendable, Hashable {
    case attributesTooLarge, targetMaximumExceeded, unsupported
}

/// The values that the views of a Live Activity show.
public struct ActivityViewContext<Attributes: ActivityAttributes>: Sendable {
    /// The id of the activity.
    public let activityID: String
    /// The values that stay the same.
    public let attributes: Attributes
    /// The content.
    public let state: Attributes.ContentState
    /// Whether the content is out of date.
    public let isStale: Bool

    package init(
        _ id: String, _ attributes: Attributes, _ state: Attributes.ContentState, isStale: Bool
    ) {
        (activityID, self.attributes, self.state, self.isStale) = (id, attributes, state, isStale)
    }
}
