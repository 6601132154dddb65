import APNsSimulator

/// Behaviors in the notation of the command line.
enum PushBehaviourText {
    /// The notation, for help and errors.
    static let help = """
        a status (200, 410), one of Apple's reasons (TooManyRequests), slow:MILLISECONDS, \
        silence, reset (the stream), refuse (the stream), cut (the connection) or goaway
        """

    /// The longest delay, in milliseconds.
    private static let slowMax = 3_600_000

    /// The reason that a bare status stands for.
    private static let reasons: [Int: APNsReason] = [
        400: .badDeviceToken, 403: .invalidProviderToken, 404: .badPath, 405: .methodNotAllowed,
        410: .unregistered, 413: .payloadTooLarge, 429: .tooManyRequests,
        500: .internalServerError, 503: .serviceUnavailable,
    ]

    /// Parses a behavior; `nil` if the text is none. `wall`, in milliseconds since 1970, is the
    /// expiry of dead tokens.
    static func parse(_ text: some StringProtocol, wall: Int64) -> PushBehaviour? {
        switch text {
        case "silence": return .silence(isTaken: true)
        case "reset": return .resetStream(isTaken: true)
        case "refuse": return .refuseStream
        case "cut": return .resetConnection(isTaken: true)
        case "goaway": return .goAway(reason: APNsReason.shutdown.rawValue, includesThis: false)
        case "200": return .take
        default: break
        }
        if text.hasPrefix("slow:") {
            guard let wait = Int(text.dropFirst(5)), (0...slowMax).contains(wait) else {
                return nil
            }
            return .slow(wait, .taken)
        }
        let reason = APNsReason(rawValue: String(text)) ?? Int(text).flatMap { reasons[$0] }
        return reason.map { refusal($0, wall: wall) }
    }

    /// Every possible fault, each with an equal share.
    static func mixture(share: Int, wall: Int64) -> [PushFault] {
        let behaviours: [PushBehaviour] =
            [
                .slow(2_000, .taken), .silence(isTaken: true), .silence(isTaken: false),
                .resetStream(isTaken: true), .refuseStream, .resetConnection(isTaken: true),
                .goAway(reason: APNsReason.shutdown.rawValue, includesThis: false),
            ]
            + [
                APNsReason.badDeviceToken, .expiredToken, .unregistered, .tooManyRequests,
                .internalServerError, .serviceUnavailable, .shutdown,
            ].map { refusal($0, wall: wall) }
        return behaviours.map { PushFault($0, share: share / behaviours.count) }
    }

    private static func refusal(_ reason: APNsReason, wall: Int64) -> PushBehaviour {
        .refused(reason, timestamp: reason.status == 410 ? wall : nil)
    }

    /// A behavior for people.
    static func text(_ behaviour: PushBehaviour) -> String {
        switch behaviour {
        case .answer(let answer): text(answer)
        case .slow(let wait, let answer): "\(text(answer)) after \(wait) ms"
        case .silence: "silence"
        case .resetStream: "stream reset"
        case .refuseStream: "stream refused"
        case .resetConnection: "connection cut"
        case .goAway(let reason, _): "GOAWAY \(reason)"
        }
    }

    private static func text(_ answer: PushAnswer) -> String {
        "\(answer.status)" + (answer.reason.map { " \($0)" } ?? "")
    }
}
