import APNsSimulator
import WidgetModel

/// The faults of a group of devices; each fault hits 5 % of their pushes.
package struct StormFaults: Sendable {
    package let name: String
    package let behaviours: [PushBehaviour]

    /// The share of each fault, in percent.
    private static let share = 5

    /// The request is rejected, and would be again.
    package static let requests = StormFaults(
        name: "requests",
        [
            .badCollapseID, .badExpirationDate, .badMessageID, .badPriority, .badTopic,
            .duplicateHeaders, .invalidPushType, .missingDeviceToken, .missingTopic, .payloadEmpty,
            .missingProviderToken, .badPath, .methodNotAllowed, .payloadTooLarge,
        ], others: [.answer(PushAnswer(status: 418, reason: "NeverHeardOf"))])

    /// The device, or its token, is at fault.
    package static let devices = StormFaults(
        name: "devices",
        [
            .badDeviceToken, .deviceTokenNotForTopic, .forbidden, .expiredToken, .unregistered,
            .tooManyRequests,
        ], others: [.slow(20, .taken)])

    /// The connection, or APNs, is at fault.
    package static let connections = StormFaults(
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

    /// The faults of ``connections`` that end within seconds.
    package static let passing = StormFaults(
        name: "passing", [.idleTimeout], others: Array(connections.behaviours.suffix(7)))

    /// No faults: the devices are registered for the wrong environment.
    package static let strays = StormFaults(name: "strays", [], others: [])

    /// The reasons that stop an app or one of its topics until an operator corrects something.
    package static let stopping: [APNsReason] = [
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
    package init(_ reason: APNsReason) {
        self.init(name: reason.rawValue, [reason], others: [])
    }

    /// Returns the behaviours for the pushes to one device token. Faults are drawn for the first
    /// `draws`, of which the first `silentDraws` may get no answer; all later pushes are accepted.
    package func script(
        draws: Int = 150, silencesIn silentDraws: Int = .max, _ random: inout SplitMix64
    ) -> [PushBehaviour] {
        var script: [PushBehaviour] = []
        while script.count < draws {
            let place = random.below(100) / Self.share
            var behaviour = place < behaviours.count ? behaviours[place] : .take
            if case .silence = behaviour, script.count >= silentDraws { behaviour = .take }
            script.append(behaviour)
            // A dead token stays dead: the last behaviour of a script is repeated.
            if behaviour.answer?.documentedReason?.endsToken == true { return script }
        }
        return script + [.take]
    }
}
