import Testing

@testable import GatewayCore
@testable import GatewayPush

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

    @Test func `200 counts as delivered`() {
        #expect(Self.reaction(200, nil) == APNsReaction(.delivered))
    }

    @Test func `400 BadCollapseId is not repeated unchanged`() {
        #expect(Self.reaction(400, "BadCollapseId") == Self.badRequest)
    }

    @Test func `400 BadDeviceToken tries the other environment once and then drops the token`() {
        let first = Self.reaction(400, "BadDeviceToken") { $0.mayTryOtherEnvironment = true }
        #expect(first == APNsReaction(.tryOtherEnvironment))
        #expect(Self.reaction(400, "BadDeviceToken") == APNsReaction(.dropAddress))
    }

    @Test(arguments: ["BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic"])
    func `400 with an invalid header value is a fault of ours`(reason: String) {
        #expect(Self.reaction(400, reason) == Self.badRequest)
    }

    @Test func `400 DeviceTokenNotForTopic quarantines the pairing`() {
        let reaction = Self.reaction(400, "DeviceTokenNotForTopic")
        #expect(reaction == APNsReaction(.quarantineAddress, alert: .pairingRefused))
    }

    @Test func `400 DuplicateHeaders is a fault of ours`() {
        #expect(Self.reaction(400, "DuplicateHeaders") == Self.badRequest)
    }

    @Test func `400 IdleTimeout opens a new connection and tries again`() {
        let reaction = Self.reaction(400, "IdleTimeout")
        #expect(reaction == APNsReaction(.retry(.connection), connection: .replace))
    }

    @Test func `400 InvalidPushType is a fault of ours`() {
        #expect(Self.reaction(400, "InvalidPushType") == Self.badRequest)
    }

    @Test(arguments: ["MissingDeviceToken", "MissingTopic", "PayloadEmpty"])
    func `400 with an incomplete request is a fault of ours`(reason: String) {
        #expect(Self.reaction(400, reason) == Self.badRequest)
    }

    @Test(arguments: ["BadChannelId", "MissingChannelId", "MissingPushType"])
    func `400 with an incomplete push to a channel is a fault of ours`(reason: String) {
        #expect(Self.reaction(400, reason) == Self.badRequest)
    }

    @Test func `400 ChannelNotRegistered drops the channel`() {
        #expect(Self.reaction(400, "ChannelNotRegistered") == APNsReaction(.dropAddress))
    }

    @Test(arguments: [(400, "FeatureNotEnabled"), (403, "TopicMismatch")])
    func `an app whose channels are refused keeps its other pushes`(status: Int, reason: String) {
        let reaction = Self.reaction(status, reason)
        #expect(reaction == APNsReaction(.quarantineAddress, alert: .topicRefused))
    }

    @Test func `400 TopicDisallowed stops the topic`() {
        let reaction = Self.reaction(400, "TopicDisallowed")
        #expect(reaction == APNsReaction(.stop(.topic), alert: .topicRefused))
    }

    @Test(arguments: ["BadCertificate", "BadCertificateEnvironment"])
    func `403 with a bad certificate is the operator's`(reason: String) {
        #expect(Self.reaction(403, reason) == Self.badCredential)
    }

    @Test func `403 ExpiredProviderToken mints once and tries once more`() {
        let first = Self.reaction(403, "ExpiredProviderToken")
        #expect(first == APNsReaction(.retry(.atOnce), providerToken: .mint))
        let second = Self.reaction(403, "ExpiredProviderToken") { $0.hasMinted = true }
        #expect(second == Self.badCredential)
    }

    @Test func `403 Forbidden is never tried again`() {
        let reaction = Self.reaction(403, "Forbidden")
        #expect(reaction == APNsReaction(.quarantineAddress, alert: .credentialRefused))
    }

    @Test func `403 InvalidProviderToken is the operator's and mints nothing`() {
        #expect(Self.reaction(403, "InvalidProviderToken") == Self.badCredential)
    }

    @Test func `403 MissingProviderToken is a fault of ours`() {
        #expect(Self.reaction(403, "MissingProviderToken") == Self.badRequest)
    }

    @Test func `403 UnrelatedKeyIdInToken takes a new connection once`() {
        let first = Self.reaction(403, "UnrelatedKeyIdInToken")
        #expect(first == APNsReaction(.retry(.atOnce), connection: .replace))
        let second = Self.reaction(403, "UnrelatedKeyIdInToken") { $0.hasReconnected = true }
        #expect(second == Self.badCredential)
    }

    @Test(arguments: ["BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken"])
    func `403 BadEnvironmentKeyIdInToken stops the key in that environment`(reason: String) {
        #expect(Self.reaction(403, reason) == Self.badCredential)
    }

    @Test func `404 BadPath is a fault of ours`() {
        #expect(Self.reaction(404, "BadPath") == Self.badRequest)
    }

    @Test func `405 MethodNotAllowed is a fault of ours`() {
        #expect(Self.reaction(405, "MethodNotAllowed") == Self.badRequest)
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

    @Test func `413 PayloadTooLarge is never tried again`() {
        #expect(Self.reaction(413, "PayloadTooLarge") == Self.badRequest)
    }

    @Test func `429 TooManyProviderTokenUpdates goes back to the older provider token`() {
        let reaction = Self.reaction(429, "TooManyProviderTokenUpdates")
        #expect(reaction == APNsReaction(.retry(.connection), providerToken: .useOlder))
    }

    @Test func `429 TooManyRequests delays that device alone`() {
        #expect(Self.reaction(429, "TooManyRequests") == APNsReaction(.retry(.device)))
    }

    @Test func `500 InternalServerError backs off`() {
        #expect(Self.reaction(500, "InternalServerError") == APNsReaction(.retry(.service)))
    }

    @Test(arguments: ["ServiceUnavailable", "Shutdown"])
    func `503 backs off and takes a new connection`(reason: String) {
        let reaction = Self.reaction(503, reason)
        #expect(reaction == APNsReaction(.retry(.service), connection: .replace))
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
