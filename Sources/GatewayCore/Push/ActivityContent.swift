import WidgetModel

/// The reason why there is no content for a Live Activity; its raw value is shown to people.
package enum ContentFailure: String, Error, Sendable, CaseIterable {
    /// The content source could not be reached, or the connection ended before its answer.
    case unreachable
    /// The answer did not arrive in time.
    case timedOut = "timed-out"
    /// Connecting to the source's address is not allowed.
    case notAllowed = "address-not-allowed"
    /// The answer has a status other than 200 and 204.
    case status
    /// The answer, or the push with it, is too large.
    case tooLarge = "too-large"
    /// The answer is not what it must be.
    case invalid
    /// The question could not be signed.
    case notSigned = "not-signed"

    /// Whether the source was reached, and may have content for others.
    var isAnswer: Bool { self == .status || self == .tooLarge || self == .invalid }
}

/// The content of a Live Activity, as its app's backend states it when it is pushed.
package struct ActivityContent: Sendable, Hashable {
    package enum Event: String, Sendable {
        case update, end
    }

    /// The additional content of a push that starts an activity.
    package typealias Start = (
        type: String, attributes: JSONObject, alert: JSONObject?, channel: String?
    )

    /// The longest answer of a content source, and the longest payload of a push, bytes. To a
    /// channel APNs would accept more.
    package static let bytesMax = 4_096
    /// The seconds since 1970 that a date may have: no milliseconds.
    private static let dates: Range<Int64> = 1_000_000_000..<100_000_000_000

    package let event: Event
    /// The state that the activity shows.
    package let contentState: JSONObject
    /// When the content becomes outdated, seconds since 1970.
    package let staleDate: Int64?
    /// The time at which an ended activity disappears, seconds since 1970.
    package let dismissalDate: Int64?
    package let relevanceScore: JSONValue?
    package let alert: JSONObject?

    /// Reads the answer of a content source. Unknown members are ignored.
    package init(_ body: [UInt8]) throws(ContentFailure) {
        guard body.count <= Self.bytesMax else { throw .tooLarge }
        guard let object = (try? JSONValue(parsing: body))?.objectValue else { throw .invalid }
        func member<Value>(
            _ name: String, _ read: (JSONValue) -> Value?
        ) throws(ContentFailure) -> Value? {
            guard let found = object[name], found != .null else { return nil }
            guard let value = read(found) else { throw .invalid }
            return value
        }
        func date(_ name: String) throws(ContentFailure) -> Int64? {
            try member(name) { value in
                value.integerValue.flatMap { Self.dates.contains($0) ? $0 : nil }
            }
        }
        guard let event = try member("event", { $0.stringValue.flatMap { Event(rawValue: $0) } }),
            let contentState = try member("contentState", { $0.objectValue })
        else { throw .invalid }
        self.event = event
        self.contentState = contentState
        staleDate = try date("staleDate")
        dismissalDate = try date("dismissalDate")
        // An integer stays one.
        relevanceScore = try member("relevanceScore") { value -> JSONValue? in
            value.numberValue.map { _ in value }
        }
        alert = try member("alert") { $0.objectValue }
    }

    /// Returns the payload of a push with the content.
    ///
    /// - Parameters:
    ///   - timestamp: Seconds since 1970; a device ignores content with an older timestamp.
    ///   - start: The activity to start; `nil` for an active one. The content must not end it, and
    ///     its alert replaces the start's.
    package func payload(
        at timestamp: Int64, starting start: Start? = nil
    ) throws(ContentFailure) -> [UInt8] {
        var aps: JSONObject = [
            "timestamp": .integer(timestamp),
            "event": .string(start == nil ? event.rawValue : "start"),
            "content-state": .object(contentState),
        ]
        if let staleDate { aps["stale-date"] = .integer(staleDate) }
        if event == .end, let dismissalDate { aps["dismissal-date"] = .integer(dismissalDate) }
        if let relevanceScore { aps["relevance-score"] = relevanceScore }
        if let alert = alert ?? start?.alert { aps["alert"] = .object(alert) }
        if let start {
            aps["attributes-type"] = .string(start.type)
            aps["attributes"] = .object(start.attributes)
            // Without a channel the activity gets a push token of its own.
            if let channel = start.channel {
                aps["input-push-channel"] = .string(channel)
            } else {
                aps["input-push-token"] = 1
            }
        }
        let payload = JSONValue.object(["aps": .object(aps)]).serialized
        guard payload.count <= Self.bytesMax else { throw .tooLarge }
        return payload
    }
}
