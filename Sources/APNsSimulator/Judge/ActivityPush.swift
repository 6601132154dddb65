import WidgetModel

/// The content of a push for a Live Activity.
package struct ActivityPush: Sendable, Hashable {
    package enum Event: String, Sendable, CaseIterable {
        case start, update, end
    }

    /// The members of `aps`; empty if the body has none.
    package let aps: JSONObject

    /// Reads the content of a request; `nil` for another push type.
    package init?(_ request: PushRequest) {
        guard request.pushType == "liveactivity" else { return nil }
        let payload = (try? JSONValue(parsing: request.body))?.objectValue
        aps = payload?["aps"]?.objectValue ?? JSONObject()
    }

    package var event: Event? { aps["event"]?.stringValue.flatMap { Event(rawValue: $0) } }
    /// The time of the content, seconds since 1970.
    package var timestamp: Int64? { aps["timestamp"]?.integerValue }
    package var contentState: JSONObject? { aps["content-state"]?.objectValue }

    // MARK: Rules

    private typealias Check = @Sendable (JSONValue) -> Bool

    /// A documented key of `aps`.
    private struct Key: Sendable {
        let name: String
        let isValid: Check
        var required: Set<Event> = []
        var allowed = Set(Event.allCases)
    }

    // A time in milliseconds is longer.
    private static let isTime: Check = { (0..<100_000_000_000).contains($0.integerValue ?? -1) }
    private static let isNumber: Check = { $0.numberValue != nil }
    private static let isText: Check = { $0.stringValue?.isEmpty == false }
    private static let isObject: Check = { $0.objectValue != nil }

    private static let keys = [
        Key(name: "timestamp", isValid: isTime, required: [.start, .update, .end]),
        Key(name: "event", isValid: isText),
        Key(name: "content-state", isValid: isObject, required: [.start, .update, .end]),
        Key(name: "stale-date", isValid: isTime),
        Key(name: "dismissal-date", isValid: isTime),
        Key(name: "relevance-score", isValid: isNumber),
        Key(name: "alert", isValid: isObject, required: [.start]),
        Key(name: "attributes-type", isValid: isText, required: [.start], allowed: [.start]),
        Key(name: "attributes", isValid: isObject, required: [.start], allowed: [.start]),
        Key(name: "input-push-channel", isValid: isText, allowed: [.start]),
        Key(name: "input-push-token", isValid: isNumber, allowed: [.start]),
    ]

    /// Returns the keys that break a rule; `aps` stands for all undocumented ones. A push for a
    /// channel (`isBroadcast`) cannot start an activity.
    func faults(isBroadcast: Bool) -> [String] {
        guard let event, !isBroadcast || event != .start else { return ["event"] }
        let broken = Self.keys.filter { key in
            guard let value = aps[key.name] else { return key.required.contains(event) }
            return !key.allowed.contains(event) || !key.isValid(value)
        }
        let isDocumented = aps.members.allSatisfy { member in
            Self.keys.contains { $0.name == member.name }
        }
        return broken.map(\.name) + (isDocumented ? [] : ["aps"])
    }

    /// Returns whether a device that has `other` may not show this content: the timestamp is not
    /// higher. APNs may deliver the two in any order.
    func isHidden(by other: ActivityPush) -> Bool {
        guard let timestamp, let newest = other.timestamp else { return false }
        return timestamp < newest || timestamp == newest && self != other
    }
}
