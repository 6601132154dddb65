import WidgetModel

/// The state of everything a client holds, and of its streams and addresses.
package struct ExplainedClient: Codable, Sendable {
    package var client = ""
    package var platform = ""
    /// The highest sequence of the log.
    package var head: UInt64 = 0
    /// The sequence at which the client registered.
    package var since: UInt64 = 0
    package var confirmed: UInt64 = 0
    /// Whether the client has connected since the gateway started.
    package var heardOf = false
    /// The time of the last registration, stream, poll or acknowledgement.
    package var lastSeen: String?
    /// The parts of the registration without effect, and the attributes that the client lacks.
    package var warnings: [Fault]?
    package var widgets: [ExplainedItem] = []
    package var recommendations: [ExplainedItem] = []
    package var controls: [ExplainedItem] = []
    package var activities: [ExplainedItem]?
    package var streams: [ExplainedStream] = []
    package var addresses: [ExplainedAddress] = []
    /// The addresses that were removed since the client last stated its addresses.
    package var removedAddresses: [RemovedAddress]?

    package init() {}

    /// An address that was removed from the registration because the push service rejected it.
    package struct RemovedAddress: Codable, Sendable, Equatable {
        package var channel = ""
        package var time = ""
        /// The reason given by the push service.
        package var reason: String?

        package init() {}
    }
}

/// A widget, recommendation set, control or activity as it is registered, with its state.
package struct ExplainedItem: Codable, Sendable {
    /// The kind; absent for an activity.
    package let kind: String?
    // Of an activity.
    package let type: String?
    package let attributes: JSONMap<JSONValue>?
    // Of a widget, control or activity.
    package let family: String?
    package let id: String?
    package let parameters: JSONMap<JSONValue>?
    package let count: Int64?
    package let delivery: JSONValue?
    // Of a recommendation set.
    package let items: JSONValue?
    package let builtAt: String?

    /// `true` if the kind or type is not in the catalog, or the set is empty.
    package var sleeps: Bool?
    package var fresh: Bool?
    package var stale: Staleness?
    /// The client attributes that rules bind to and the client lacks.
    package var lacks: [String]?
    /// `true` if no change makes the item stale, because the client lacks an attribute of each
    /// rule; then ``fresh`` is absent.
    package var dependsOnNothing: Bool?

    package var outcome: String?
    package var channel: String?
    /// The later change whose notification included it.
    package var into: UInt64?
    package var reason: String?
    package var until: String?

    /// The change since which an item is stale.
    package struct Staleness: Codable, Sendable {
        package var sequence: UInt64 = 0
        package var isEarliest = false
        package var latest: UInt64 = 0
        package var cause = ""
        package var time: String?

        package init() {}
    }
}

/// An open stream of a client.
package struct ExplainedStream: Codable, Sendable {
    package var watermark: UInt64 = 0
    package var lagging = false
    /// The kinds that the stream is limited to.
    package var kinds: [String]?

    package init() {}
}

/// An address of a client, with the state of its pushes.
package struct ExplainedAddress: Codable, Sendable {
    package let type: String
    package let pushType: String?
    package let token: String?
    /// The id of the broadcast channel, in place of a token.
    package let channel: String?
    package let environment: String?
    package let topic: String?
    package let url: String?
    package let endpoint: String?

    /// `everything`, `timelines`, `recommendations`, `control`, `activity` or `start`.
    package var `for`: String?
    package var control: String?
    /// The id of the activity, or the type of those that are started.
    package var activity: String?
    package var delivered: UInt64?
    package var cause: String?
    package var failures: Int?
    package var underWay: Bool?
    package var retryAt: String?
    package var unusable: String?
    /// The topic that APNs rejected for the address, and the one that fits; or why the source of
    /// an activity's content fails.
    package var problem: String?
    package var budget: Budget?

    /// The saved pushes of the device for one type of push.
    package struct Budget: Codable, Sendable, Equatable {
        /// The pushes that may be sent now.
        package var left = 0
        /// The part of ``left`` that is reserved for urgent changes.
        package var reserved = 0
        /// The maximum number of saved pushes.
        package var burst = 0
        package var perDay = 0
        /// The time of the next refill by one push; absent if the budget is full.
        package var refillsAt: String?

        package init() {}
    }
}
