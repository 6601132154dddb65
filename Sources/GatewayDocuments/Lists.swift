import WidgetModel

/// A page of the changes of the log, newest first.
package struct ChangePage: Codable, Sendable {
    package var changes: [LoggedChange] = []
    /// The cursor of the next page.
    package var before: UInt64?

    package init() {}
}

/// A change of the log.
package struct LoggedChange: Codable, Sendable {
    package var sequence: UInt64 = 0
    package var time = ""
    package var operation = ""
    package var urgency = ""
    package var source: String?
    package var id: String?
    package var properties: [String]?
    package var entity = ""
    package var entityID: String?
    package var unmatched: Bool?
    package var broad: Bool?
    /// The number of keys that the change invalidated, by kind.
    package var kinds: JSONMap<Int>?

    package init() {}
}

/// A page of push attempts, newest first.
package struct AttemptPage: Codable, Sendable {
    package var attempts: [PushAttempt] = []
    /// The cursor of the next page.
    package var before: Int64?

    package init() {}
}

/// An attempt to push to a client.
package struct PushAttempt: Codable, Sendable {
    package var number: Int64 = 0
    package var time = ""
    package var client = ""
    package var channel = ""
    package var outcome = ""
    package var ms: Int64 = 0
    /// The reason given by the push service or webhook.
    package var reason: String?
    /// The identifier of the attempt at the push service or webhook.
    package var reference: String?
    /// The sequence of the latest log entry that it reported.
    package var sequence: UInt64?
    /// The reason why a stream did not suffice.
    package var cause: String?

    package init() {}
}

/// The push problems of an app that need an operator.
package struct PushEvents: Codable, Sendable {
    package var events: [PushEvent] = []

    package init() {}
}

/// A push problem that needs an operator.
package struct PushEvent: Codable, Sendable {
    package var time = ""
    package var event = ""
    package var times: UInt64 = 0
    package var text = ""
    package var client: String?

    package init() {}
}
