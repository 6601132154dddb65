import Foundation
import TimelineGatewayClient
import WidgetModel
import WidgetViews

/// A Live Activity as its extension keeps it, and as it passes between the app's processes.
package struct KeptActivity: Sendable, Equatable, Codable {
    /// The longest time until the end and after it, seconds, and the limit of attributes and
    /// content, bytes (Apple, Displaying live data with Live Activities).
    static let (activeTimeMax, endedTimeMax, bytesMax) = (28_800.0, 14_400.0, 4_096)

    let id: String
    /// The name of the attributes' type, under which the catalog has its rules.
    let type: String
    let attributes: JSONValue
    let begun: Date
    /// Whether it is registered with the gateway while it runs, because it is updated from outside
    /// its app.
    private(set) var isRegistered = false
    private var channel: String?
    /// The system's push token, in base64.
    var token: String?
    private(set) var content = JSONValue.null
    private(set) var staleDate: Date?
    private(set) var relevanceScore = 0.0
    private var ended: Date?
    private var dismissal: Date?
    /// The number of contents that it had before.
    private(set) var revision = 0

    /// Creates an activity that begins now.
    init<Attributes: ActivityAttributes>(
        _ attributes: Attributes, _ content: ActivityContent<Attributes.ContentState>,
        _ pushType: PushType?
    ) throws {
        (id, type, begun) = (UUID().uuidString, "\(Attributes.self)", Date.now)
        self.attributes = try JSONValue(codable: attributes)
        (isRegistered, channel) = (pushType != nil, pushType?.channelID)
        try setContent(content)
    }

    /// Replaces the content, unless it is too large.
    mutating func setContent<State>(_ content: ActivityContent<State>) throws {
        let state = try JSONValue(codable: content.state)
        guard attributes.serialized.count + state.serialized.count <= Self.bytesMax else {
            throw ActivityAuthorizationError.attributesTooLarge
        }
        (self.content, staleDate) = (state, content.staleDate)
        relevanceScore = content.relevanceScore.isFinite ? content.relevanceScore : 0
    }

    mutating func end(_ policy: ActivityUIDismissalPolicy) {
        if ended == nil { (ended, dismissal) = (.now, policy.date) }
    }

    /// Replaces the content, or ends it, as its app wants it.
    mutating func update(from other: KeptActivity) {
        (content, staleDate) = (other.content, other.staleDate)
        (relevanceScore, ended, dismissal) = (other.relevanceScore, other.ended, other.dismissal)
        revision += 1
    }

    private var endDate: Date { min(ended ?? .distantFuture, begun + Self.activeTimeMax) }

    private var removalDate: Date {
        min(max(dismissal ?? .distantFuture, endDate), endDate + Self.endedTimeMax)
    }

    package func phase(at date: Date) -> ActivityState {
        if date >= removalDate { return .dismissed }
        if date >= endDate { return .ended }
        return staleDate.map { $0 <= date } ?? false ? .stale : .active
    }

    func isRunning(at date: Date) -> Bool { date < endDate }

    /// Returns the activity as it is registered; without its push token if `environment` is `nil`.
    func registered(_ environment: String?) -> RegisteredActivity {
        RegisteredActivity(
            type: type, id: id, of: attributes, channel: channel,
            delivery: environment.flatMap { name in token.map { DeliveryAddress.live($0, name) } })
    }

    /// The activity as an item that the engine keeps current.
    var item: WidgetInfo { WidgetInfo(registered(nil)) }

    /// Returns a presentation as something that is shown and used like a widget.
    package func widget(in presentation: ActivityPresentation) -> WidgetInfo {
        var widget = item
        widget.family = presentation.family
        return widget
    }
}

extension DeliveryAddress {
    fileprivate static func live(_ token: String, _ environment: String) -> DeliveryAddress {
        let bytes = Data(base64Encoded: token) ?? Data()
        return .push(.liveactivity, token: bytes, environment: environment)
    }
}

extension WidgetInfo {
    /// Creates the item that stands for an activity.
    init(_ activity: RegisteredActivity) {
        self.init(
            kind: activity.type, family: WidgetFamily(rawValue: "activity"),
            configuration: activity.attributes.merging(["": .single(activity.id)]) { $1 })
    }
}

/// The Live Activities of a client, and the push-to-start tokens of their types.
package struct KeptActivities: Sendable, Equatable, Codable {
    /// The most activities at a time, as in a registration.
    static let countMax = 16

    package internal(set) var list: [KeptActivity] = []
    /// The push-to-start tokens in base64, by the type.
    var startTokens: [String: String] = [:]

    subscript(_ id: String) -> KeptActivity? { list.first { $0.id == id } }

    /// Adds an activity, or replaces the one with its id. One that has ended gives way to it.
    mutating func put(_ activity: KeptActivity) throws {
        let known = list.firstIndex { $0.id == activity.id }
        let isFull = list.count >= Self.countMax
        if let index = known ?? (isFull ? list.firstIndex { !$0.isRunning(at: .now) } : nil) {
            list[index] = activity
        } else if isFull {
            throw ActivityAuthorizationError.targetMaximumExceeded
        } else {
            list.append(activity)
        }
    }

    /// Adds what belongs into a registration now; without push tokens if `environment` is `nil`.
    func add(to registration: inout ClientRegistration, _ environment: String?) {
        registration.activities = list.filter { $0.isRegistered && $0.isRunning(at: .now) }
            .map { $0.registered(environment) }
        guard let environment else { return }
        registration.activityStarts = startTokens.sorted { $0.key < $1.key }
            .prefix(Self.countMax)
            .map { ActivityStartAddress(type: $0.key, delivery: .live($0.value, environment)) }
    }
}

extension ClientArchive {
    private var activitiesPath: String { directory + "/activities.json" }

    /// The Live Activities as they were saved last.
    package var activities: KeptActivities {
        document(activitiesPath).flatMap { try? KeptActivities(decoding: $0) } ?? KeptActivities()
    }

    /// Replaces the Live Activities; those saved before remain if it throws.
    func save(_ kept: KeptActivities) throws(Failure) {
        let json = try? JSONValue(encoding: kept)
        try replace(activitiesPath, with: (json ?? .null).serialized)
    }
}
