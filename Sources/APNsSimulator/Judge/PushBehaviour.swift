/// What APNs answers to a push.
package struct PushAnswer: Sendable, Hashable {
    /// The status.
    package let status: Int
    /// Why, unless the push was taken.
    package let reason: String?
    /// With 410: when the device token was found dead, in milliseconds since 1970.
    package let timestamp: Int64?

    /// Any answer, also one that APNs is not known to give.
    package init(status: Int, reason: String? = nil, timestamp: Int64? = nil) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
    }

    /// The push was taken.
    package static let taken = PushAnswer(status: 200)

    /// One of the documented refusals.
    package static func refused(_ reason: APNsReason, timestamp: Int64? = nil) -> PushAnswer {
        PushAnswer(status: reason.status, reason: reason.rawValue, timestamp: timestamp)
    }

    /// The reason, where it is a documented one.
    package var documentedReason: APNsReason? { reason.flatMap(APNsReason.init) }

    /// The body: JSON, or nothing for a push that was taken.
    package var body: String {
        guard let reason else { return "" }
        guard let timestamp else { return #"{"reason":"\#(reason)"}"# }
        return #"{"reason":"\#(reason)","timestamp":\#(timestamp)}"#
    }
}

/// What becomes of a push, beside what the rules of APNs make of it.
package enum PushBehaviour: Sendable, Hashable {
    /// It is answered; with status 200 it is taken.
    case answer(PushAnswer)
    /// It is answered after so many milliseconds.
    case slow(Int, PushAnswer)
    /// It is never answered.
    case silence(isTaken: Bool)
    /// Its stream is reset with INTERNAL_ERROR.
    case resetStream(isTaken: Bool)
    /// Its stream is reset with REFUSED_STREAM, which promises that nothing was done about it.
    case refuseStream
    /// The connection is reset.
    case resetConnection(isTaken: Bool)
    /// The connection is ended by GOAWAY with a reason. Streams before this one are still answered;
    /// this one is, and is taken, if the GOAWAY includes it.
    case goAway(reason: String, includesThis: Bool)

    /// One of the documented refusals.
    package static func refused(_ reason: APNsReason, timestamp: Int64? = nil) -> PushBehaviour {
        .answer(.refused(reason, timestamp: timestamp))
    }

    /// It is taken.
    package static let take = PushBehaviour.answer(.taken)

    /// What it is answered, at once or later.
    package var answer: PushAnswer? {
        switch self {
        case .answer(let answer), .slow(_, let answer): answer
        case .goAway(_, includesThis: true): .taken
        case .silence, .resetStream, .refuseStream, .resetConnection, .goAway: nil
        }
    }
}

/// Something that goes wrong now and then.
package struct PushFault: Sendable, Hashable {
    /// What.
    package let behaviour: PushBehaviour
    /// How often, in millionths of all pushes that no rule refuses.
    package let share: Int

    /// A fault; shares out of range count as the nearest one in it.
    package init(_ behaviour: PushBehaviour, share: Int) {
        self.behaviour = behaviour
        self.share = min(max(0, share), 1_000_000)
    }
}
