import APNsSimulator
import GatewayTestSupport
import WidgetModel

/// What goes wrong with the devices of a group: each fault with 5 % of their pushes.
struct StormFaults {
    /// What the group is called.
    let name: String
    let behaviours: [PushBehaviour]

    /// In percent.
    static let share = 5
    /// Pushes of a device for which faults are drawn; all after them are taken.
    private static let drawnMax = 150

    /// The request is refused, and would be again.
    static let requests = StormFaults(
        name: "requests",
        [
            .badCollapseID, .badExpirationDate, .badMessageID, .badPriority, .badTopic,
            .duplicateHeaders, .invalidPushType, .missingDeviceToken, .missingTopic, .payloadEmpty,
            .missingProviderToken, .badPath, .methodNotAllowed, .payloadTooLarge,
        ], others: [.answer(PushAnswer(status: 418, reason: "NeverHeardOf"))])

    /// The device, or its token, is at fault.
    static let devices = StormFaults(
        name: "devices",
        [
            .badDeviceToken, .deviceTokenNotForTopic, .forbidden, .expiredToken, .unregistered,
            .tooManyRequests,
        ], others: [.slow(20, .taken)])

    /// The connection, or APNs, is at fault.
    static let connections = StormFaults(
        name: "connections",
        [
            .internalServerError, .serviceUnavailable, .shutdown, .idleTimeout,
            .tooManyProviderTokenUpdates,
        ],
        others: [
            .slow(30, .taken), .silence(isTaken: false), .silence(isTaken: true),
            .resetStream(isTaken: false), .resetStream(isTaken: true), .refuseStream,
            .resetConnection(isTaken: false), .resetConnection(isTaken: true),
            .goAway(reason: "Shutdown", includesThis: false),
            .goAway(reason: "Shutdown", includesThis: true),
        ])

    /// Nothing but that they are registered for the environment that they are not of.
    static let strays = StormFaults(name: "strays", [], others: [])

    /// What stops an app or one of its topics: an operator has to mend something.
    static let stopping: [APNsReason] = [
        .topicDisallowed, .badCertificate, .badCertificateEnvironment, .invalidProviderToken,
        .badEnvironmentKeyIDInToken, .expiredProviderToken, .unrelatedKeyIDInToken,
    ]

    private init(name: String, _ reasons: [APNsReason], others: [PushBehaviour]) {
        self.name = name
        // Tokens that are found dead stay dead, whenever they were registered.
        behaviours =
            reasons.map { .refused($0, timestamp: $0.status == 410 ? .max : nil) } + others
    }

    /// One reason alone.
    init(_ reason: APNsReason) {
        self.init(name: reason.rawValue, [reason], others: [])
    }

    /// What becomes of the pushes to one device token.
    func script(_ random: inout SplitMix64) -> [PushBehaviour] {
        var script: [PushBehaviour] = []
        while script.count < Self.drawnMax {
            let place = random.below(100) / Self.share
            script.append(place < behaviours.count ? behaviours[place] : .take)
            // A dead token stays dead: the last of a script goes on.
            if script.last?.answer?.documentedReason?.endsToken == true { return script }
        }
        return script + [.take]
    }
}
