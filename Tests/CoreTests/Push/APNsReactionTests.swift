import Testing

@testable import GatewayCore

/// Tests each row of the table of statuses and reasons, by the table's own names.
@Suite struct APNsReactionTests {
    static let attempt = APNsAttempt(registeredAt: 1_000, sentAt: 5_000)

    static func reaction(
        _ status: Int, _ reason: String?, timestamp: Int64? = nil,
        _ change: (inout APNsAttempt) -> Void = { _ in }
    ) -> APNsReaction {
        var attempt = attempt
        change(&attempt)
        return APNsReaction(
            to: .answered(status: status, reason: reason, timestamp: timestamp), of: attempt)
    }

    static let badRequest = APNsReaction(.giveUp, alert: .requestRefused)
    static let badCredential = APNsReaction(.stop(.credential), alert: .credentialRefused)

    /// Reactions that depend on nothing but the answer.
    static let rows: [(APNsReaction, Int, [String?])] = [
        (APNsReaction(.delivered), 200, [nil]),
        // Faults of ours, of which none is repeated unchanged.
        (
            badRequest, 400,
            [
                "BadChannelId", "BadCollapseId", "BadExpirationDate", "BadMessageId",
                "BadPriority", "BadTopic", "DuplicateHeaders", "InvalidPushType",
                "MissingChannelId", "MissingDeviceToken", "MissingPushType", "MissingTopic",
                "PayloadEmpty",
            ]
        ),
        (badRequest, 403, ["MissingProviderToken"]), (badRequest, 404, ["BadPath"]),
        (badRequest, 405, ["MethodNotAllowed"]), (badRequest, 413, ["PayloadTooLarge"]),
        (APNsReaction(.quarantineAddress, alert: .pairingRefused), 400, ["DeviceTokenNotForTopic"]),
        (APNsReaction(.retry(.connection), connection: .replace), 400, ["IdleTimeout"]),
        (APNsReaction(.dropAddress), 400, ["ChannelNotRegistered"]),
        // An app whose channels are refused keeps its other pushes.
        (APNsReaction(.quarantineAddress, alert: .topicRefused), 400, ["FeatureNotEnabled"]),
        (APNsReaction(.quarantineAddress, alert: .topicRefused), 403, ["TopicMismatch"]),
        (APNsReaction(.stop(.topic), alert: .topicRefused), 400, ["TopicDisallowed"]),
        // These are the operator's, and mint nothing.
        (
            badCredential, 403,
            [
                "BadCertificate", "BadCertificateEnvironment", "BadEnvironmentKeyIdInToken",
                "BadEnvironmentKeyInToken", "InvalidProviderToken",
            ]
        ),
        (APNsReaction(.quarantineAddress, alert: .credentialRefused), 403, ["Forbidden"]),
        (
            APNsReaction(.retry(.connection), providerToken: .useOlder), 429,
            ["TooManyProviderTokenUpdates"]
        ),
        (APNsReaction(.retry(.device)), 429, ["TooManyRequests"]),
        (APNsReaction(.retry(.service)), 500, ["InternalServerError"]),
        (
            APNsReaction(.retry(.service), connection: .replace), 503,
            ["ServiceUnavailable", "Shutdown"]
        ),
    ]

    @Test(arguments: rows)
    func `an answer has its reaction`(expected: APNsReaction, status: Int, reasons: [String?]) {
        for reason in reasons { #expect(Self.reaction(status, reason) == expected) }
    }

    @Test func `400 BadDeviceToken tries the other environment once and then drops the token`() {
        let first = Self.reaction(400, "BadDeviceToken") { $0.mayTryOtherEnvironment = true }
        #expect(first == APNsReaction(.tryOtherEnvironment))
        #expect(Self.reaction(400, "BadDeviceToken") == APNsReaction(.dropAddress))
    }

    @Test func `403 ExpiredProviderToken mints once and tries once more`() {
        let first = Self.reaction(403, "ExpiredProviderToken")
        #expect(first == APNsReaction(.retry(.atOnce), providerToken: .mint))
        let second = Self.reaction(403, "ExpiredProviderToken") { $0.hasMinted = true }
        #expect(second == Self.badCredential)
    }

    @Test func `403 UnrelatedKeyIdInToken takes a new connection once`() {
        let first = Self.reaction(403, "UnrelatedKeyIdInToken")
        #expect(first == APNsReaction(.retry(.atOnce), connection: .replace))
        let second = Self.reaction(403, "UnrelatedKeyIdInToken") { $0.hasReconnected = true }
        #expect(second == Self.badCredential)
    }

    @Test func `410 ExpiredToken drops the token`() {
        let reaction = Self.reaction(410, "ExpiredToken", timestamp: 500)
        #expect(reaction == APNsReaction(.dropAddress))
    }

    /// Taken as seconds, the moment would lie long before any registration.
    @Test(arguments: [(999 as Int64, true), (1_000, false), (1_001, false)])
    func `410 Unregistered drops the token unless it was registered after the timestamp`(
        timestamp: Int64, isLive: Bool
    ) {
        let expected = APNsReaction(isLive ? .retry(.device) : .dropAddress)
        #expect(Self.reaction(410, "Unregistered", timestamp: timestamp) == expected)
        #expect(Self.reaction(410, nil, timestamp: timestamp) == expected)
    }

    @Test func `410 without a timestamp goes by when the push was sent`() {
        #expect(Self.reaction(410, "Unregistered") == APNsReaction(.dropAddress))
        let later = Self.reaction(410, "Unregistered") { $0.registeredAt = 5_001 }
        #expect(later == APNsReaction(.retry(.device)))
    }

    @Test(arguments: [nil, "NeverHeardOf", ""])
    func `an unknown reason leaves it to the status`(reason: String?) {
        for status in [100, 301, 400, 403, 404, 405, 413, 418] {
            let reaction = Self.reaction(status, reason)
            #expect(reaction == APNsReaction(.giveUp, alert: .answerUnknown), "\(status)")
        }
        #expect(Self.reaction(429, reason) == APNsReaction(.retry(.device)))
        #expect(Self.reaction(500, reason) == APNsReaction(.retry(.service)))
        for status in [502, 503, 504, 599] {
            let reaction = Self.reaction(status, reason)
            #expect(reaction == APNsReaction(.retry(.service), connection: .replace))
        }
        #expect(Self.reaction(201, reason) == APNsReaction(.delivered))
    }

    @Test(arguments: APNsOutcome.Failure.allCases)
    func `without an answer the push is tried again and the address kept`(
        failure: APNsOutcome.Failure
    ) {
        var attempt = Self.attempt
        let first = APNsReaction(to: .failed(failure), of: attempt)
        attempt.failures = 1
        let second = APNsReaction(to: .failed(failure), of: attempt)
        // Only a push that APNs has certainly not seen is repeated at once, and only once.
        #expect(first.verdict == .retry(failure == .notProcessed ? .atOnce : .connection))
        #expect(second.verdict == .retry(.connection))
        for reaction in [first, second] {
            // One stream's reset says nothing about the others.
            #expect(reaction.connection == (failure == .streamReset ? .keep : .replace))
            #expect(reaction.alert == nil && reaction.providerToken == .keep)
        }
    }
}
