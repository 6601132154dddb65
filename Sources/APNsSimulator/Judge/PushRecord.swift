/// What a client of APNs must not do.
package enum PushViolation: Sendable, Hashable {
    /// More than one request at a time on a connection with provider tokens before the first was
    /// taken.
    case burst
    /// More requests at a time than SETTINGS_MAX_CONCURRENT_STREAMS allows.
    case tooManyStreams
    /// The same push, by its `apns-id`, after it was answered with 200.
    case repeatedAfterSuccess
    /// The same push after it was refused for good.
    case repeatedAfter(APNsReason)
    /// A push to a device token that was answered to be dead, or not of that topic.
    case pushedToDead
    /// A request whose fields, payload or topic are refused.
    case badRequest(APNsReason)
}

/// What became of the pushes to one device token.
package struct DeviceRecord: Sendable, Hashable {
    /// Pushes kept of each device token; further ones are only counted.
    static let pushesMax = 100

    /// A push that was taken.
    package struct Push: Sendable, Hashable {
        /// Its `apns-id`; one that APNs made if it had none.
        package let id: PushID
        /// When it was taken, in milliseconds since 1970.
        package let at: Int64
        /// The connection it came by.
        package let connection: Int
        /// What was asked.
        package let request: PushRequest
    }

    /// The first pushes that were taken.
    package internal(set) var pushes: [Push] = []
    /// How many were taken.
    package internal(set) var taken = 0
    /// How many requests there were.
    package internal(set) var requests = 0
    /// The last answer, or promise of one.
    package internal(set) var last: PushBehaviour?
    /// Whether nothing may be pushed to it any more.
    package internal(set) var isDead = false
    /// The connection by which it was told so.
    var deadOn = 0
    /// What it does next; the last of it goes on.
    var script: [PushBehaviour] = []

    /// Nothing was pushed to it.
    package init() {}

    /// A push was taken.
    mutating func take(_ push: Push) {
        taken += 1
        if pushes.count < Self.pushesMax { pushes.append(push) }
    }
}

/// What happened at a simulated APNs, for tests to ask.
package struct PushRecord: Sendable {
    /// Device tokens of which a record is kept; those that come later have none.
    static let devicesMax = 2_000_000
    /// Connections whose time is kept.
    static let connectionsMax = 100_000

    /// By device token.
    package internal(set) var devices: [String: DeviceRecord] = [:]
    /// Requests in all.
    package internal(set) var requests = 0
    /// Pushes taken in all.
    package internal(set) var taken = 0
    /// Pushes taken whose `apns-id` had been taken before.
    package internal(set) var duplicates = 0
    /// How often each answer was given.
    package internal(set) var answers: [PushAnswer: Int] = [:]
    /// What the client did wrong, and how often.
    package internal(set) var violations: [PushViolation: Int] = [:]
    /// When connections were opened, in the caller's monotonic milliseconds.
    package internal(set) var connections: [Int64] = []
    /// Connections that are open.
    package internal(set) var openConnections = 0
    /// Most requests under way at a time on one connection.
    package internal(set) var mostStreams = 0
    /// The different provider tokens whose signature held, oldest first.
    package internal(set) var providerTokens: [ProviderTokens.Token] = []

    /// Counts a violation.
    mutating func note(_ violation: PushViolation) {
        violations[violation, default: 0] += 1
    }
}
