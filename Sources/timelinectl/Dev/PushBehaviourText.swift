import APNsSimulator
import ArgumentParser

/// Behaviors of a service in the notation of the command line.
struct PushBehaviourText {
    private let service: SimulatedService
    /// The expiry of dead tokens, ms since 1970.
    private let wall: Int64

    init(_ service: SimulatedService, wall: Int64) {
        (self.service, self.wall) = (service, wall)
    }

    /// The notation, for help and errors.
    static func help(_ service: SimulatedService) -> String {
        let reasons =
            switch service {
            case .apns: "one of Apple's reasons (TooManyRequests), "
            case .webPush: ""
            case .fcm: "one of FCM's error codes (UNREGISTERED), "
            }
        return """
            a status (200, 410), \(reasons)slow:MILLISECONDS, \
            silence, reset (the stream), refuse (the stream), cut (the connection) or goaway
            """
    }

    /// The longest delay, in milliseconds.
    private static let slowMax = 3_600_000

    /// The reason that a bare status stands for.
    private static let reasons: [Int: APNsReason] = [
        400: .badDeviceToken, 403: .invalidProviderToken, 404: .badPath, 405: .methodNotAllowed,
        410: .unregistered, 413: .payloadTooLarge, 429: .tooManyRequests,
        500: .internalServerError, 503: .serviceUnavailable,
    ]

    /// Parses a behavior. Throws `ValidationError` if the text is none.
    func behaviour(_ text: some StringProtocol) throws -> PushBehaviour {
        guard let behaviour = parse(text) else {
            throw ValidationError("`\(text)` is not \(Self.help(service))")
        }
        return behaviour
    }

    private func parse(_ text: some StringProtocol) -> PushBehaviour? {
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
            guard let wait = Int(text.dropFirst(5)), (0...Self.slowMax).contains(wait) else {
                return nil
            }
            return .slow(wait, .taken)
        }
        if service == .fcm, let answer = PushAnswer.fcm(code: String(text)) {
            return .answer(answer)
        }
        if service != .apns {
            let status = Int(text).flatMap { (201..<600).contains($0) ? $0 : nil }
            return status.map { .answer(PushAnswer(status: $0)) }
        }
        let reason = APNsReason(rawValue: String(text)) ?? Int(text).flatMap { Self.reasons[$0] }
        return reason.map(refusal)
    }

    /// Every possible fault, each with an equal share.
    func mixture(share: Int) -> [PushFault] {
        let behaviours = PushBehaviour.faults(of: service, wall: wall)
        return behaviours.map { PushFault($0, share: share / behaviours.count) }
    }

    private func refusal(_ reason: APNsReason) -> PushBehaviour {
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
