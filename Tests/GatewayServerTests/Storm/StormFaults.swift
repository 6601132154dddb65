import APNsSimulator
import GatewayTestSupport
import WidgetModel

/// The faults of a group of devices; each fault hits 5 % of their pushes.
struct StormFaults {
    /// The group's name.
    let name: String
    let behaviours: [PushBehaviour]

    /// The share of each fault, in percent.
    static let share = 5
    /// The number of a device's pushes that faults are drawn for; all later ones are accepted.
    private static let drawnMax = 150

    /// The request is rejected, and would be again.
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

    /// No faults: the devices are registered for the wrong environment.
    static let strays = StormFaults(name: "strays", [], others: [])

    /// The reasons that stop an app or one of its topics until an operator corrects something.
    static let stopping: [APNsReason] = [
        .topicDisallowed, .badCertificate, .badCertificateEnvironment, .invalidProviderToken,
        .badEnvironmentKeyIDInToken, .expiredProviderToken, .unrelatedKeyIDInToken,
    ]

    private init(name: String, _ reasons: [APNsReason], others: [PushBehaviour]) {
        self.name = name
        // A dead token stays dead, whenever it was registered.
        behaviours =
            reasons.map { .refused($0, timestamp: $0.status == 410 ? .max : nil) } + others
    }

    /// Faults with a single reason.
    init(_ reason: APNsReason) {
        self.init(name: reason.rawValue, [reason], others: [])
    }

    /// Returns the behaviours for the pushes to one device token.
    func script(_ random: inout SplitMix64) -> [PushBehaviour] {
        var script: [PushBehaviour] = []
        while script.count < Self.drawnMax {
            let place = random.below(100) / Self.share
            script.append(place < behaviours.count ? behaviours[place] : .take)
            // A dead token stays dead: the last behaviour of a script is repeated.
            if script.last?.answer?.documentedReason?.endsToken == true { return script }
        }
        return script + [.take]
    }
}
