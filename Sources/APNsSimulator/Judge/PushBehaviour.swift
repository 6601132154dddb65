import WidgetModel

/// The response of APNs to a request.
package struct PushAnswer: Sendable, Hashable {
    package let status: Int
    /// The reason; `nil` if the push was accepted.
    package let reason: String?
    /// The time at which the device token was found dead, ms since 1970; only with 410.
    package let timestamp: Int64?
    /// The field `apns-channel-id`: the channel that was created.
    package var channelID: String?
    /// The field `retry-after`, seconds.
    package var retryAfter: Int?
    /// The properties that were read.
    package var document: JSONObject?
    /// The field of the request that FCM found invalid.
    var invalidField: String?

    /// Creates any response, even one that APNs is not known to return.
    package init(status: Int, reason: String? = nil, timestamp: Int64? = nil) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
    }

    /// The response to an accepted push.
    package static let taken = PushAnswer(status: 200)

    /// Returns a documented rejection.
    package static func refused(_ reason: APNsReason, timestamp: Int64? = nil) -> PushAnswer {
        PushAnswer(status: reason.status, reason: reason.rawValue, timestamp: timestamp)
    }

    /// Whether no push to the same device token or subscription is allowed any more. Browsers'
    /// services give no reason.
    var endsToken: Bool {
        switch reason {
        case nil: [404, 410].contains(status)
        case "UNREGISTERED"?: true
        case "INVALID_ARGUMENT"?: invalidField == FCMRules.tokenField
        default: documentedReason?.endsToken ?? false
        }
    }

    /// Returns an error of FCM; `nil` for an unknown code.
    ///
    /// - Parameter field: The field that an `INVALID_ARGUMENT` names; `nil` for the device token.
    package static func fcm(code: String, invalid field: String? = nil) -> PushAnswer? {
        let invalid = code == "INVALID_ARGUMENT" ? field ?? FCMRules.tokenField : nil
        return FCMRules.codes[code].map {
            FCMRules.answer($0.status, $0.name, code: code, invalid: invalid)
        }
    }

    /// The reason, if it is a documented one.
    package var documentedReason: APNsReason? { reason.flatMap(APNsReason.init) }

    /// The body: JSON, or empty for an accepted push.
    package var body: String {
        if let document { return JSONValue.object(document).text }
        guard let reason else { return "" }
        guard let timestamp else { return #"{"reason":"\#(reason)"}"# }
        return #"{"reason":"\#(reason)","timestamp":\#(timestamp)}"#
    }
}

/// The handling of a push beyond the rules of APNs.
package enum PushBehaviour: Sendable, Hashable {
    /// Respond; status 200 accepts the push.
    case answer(PushAnswer)
    /// Respond after this many milliseconds.
    case slow(Int, PushAnswer)
    /// Never respond.
    case silence(isTaken: Bool)
    /// Reset the stream with INTERNAL_ERROR.
    case resetStream(isTaken: Bool)
    /// Reset the stream with REFUSED_STREAM, which guarantees that the push was not processed.
    case refuseStream
    case resetConnection(isTaken: Bool)
    /// End the connection by GOAWAY with a reason. Streams before this one still get a response;
    /// this one does, and is accepted, if the GOAWAY includes it.
    case goAway(reason: String, includesThis: Bool)

    /// Returns the behavior for a documented rejection.
    package static func refused(_ reason: APNsReason, timestamp: Int64? = nil) -> PushBehaviour {
        .answer(.refused(reason, timestamp: timestamp))
    }

    package static let take = PushBehaviour.answer(.taken)

    /// Returns one of every fault that a service may have. `wall` is the expiry of dead tokens, ms
    /// since 1970.
    package static func faults(of service: SimulatedService, wall: Int64) -> [PushBehaviour] {
        let shared: [PushBehaviour] = [
            .slow(2_000, .taken), .silence(isTaken: true), .silence(isTaken: false),
            .resetStream(isTaken: true), .refuseStream, .resetConnection(isTaken: true),
            .goAway(reason: APNsReason.shutdown.rawValue, includesThis: false),
        ]
        switch service {
        case .fcm:
            var errors = FCMRules.codes.keys.sorted().map { PushAnswer.fcm(code: $0) }
            errors.append(PushAnswer.fcm(code: "INVALID_ARGUMENT", invalid: "message.data"))
            return shared
                + errors.compactMap { error -> PushBehaviour? in
                    guard var answer = error else { return nil }
                    if [429, 503].contains(answer.status) { answer.retryAfter = 30 }
                    return .answer(answer)
                }
        case .apns:
            let reasons: [APNsReason] = [
                .badDeviceToken, .expiredToken, .unregistered, .tooManyRequests,
                .internalServerError, .serviceUnavailable, .shutdown,
            ]
            return shared
                + reasons.map {
                    PushBehaviour.refused($0, timestamp: $0.status == 410 ? wall : nil)
                }
        case .webPush:
            return shared
                + [400, 401, 403, 404, 410, 413, 429, 500, 503].map { status -> PushBehaviour in
                    var answer = PushAnswer(status: status)
                    if [429, 503].contains(status) { answer.retryAfter = 30 }
                    return .answer(answer)
                }
        }
    }

    /// The response, immediate or delayed; `nil` for none.
    package var answer: PushAnswer? {
        switch self {
        case .answer(let answer), .slow(_, let answer): answer
        case .goAway(_, includesThis: true): .taken
        case .silence, .resetStream, .refuseStream, .resetConnection, .goAway: nil
        }
    }
}

package struct PushFault: Sendable, Hashable {
    /// The behavior of the fault.
    package let behaviour: PushBehaviour
    /// The frequency in millionths of all pushes that no rule rejects.
    package let share: Int

    /// Creates a fault; a share out of range is clamped.
    package init(_ behaviour: PushBehaviour, share: Int) {
        self.behaviour = behaviour
        self.share = min(max(0, share), 1_000_000)
    }
}
