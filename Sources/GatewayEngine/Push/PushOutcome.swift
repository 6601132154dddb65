import GatewayCore

/// The outcome of a push as a word for people; `Deploy/push.md` explains each.
package enum PushOutcome: String, Sendable, CaseIterable {
    case sent
    /// The token is dead.
    case dropped
    /// The token, topic and environment do not belong together.
    case quarantined
    /// The token is tried in APNs' other environment.
    case environment
    case retry
    /// The push is not retried as it is.
    case givenUp = "given-up"
    /// Nothing more is pushed there.
    case stopped
    /// The webhook is no longer called.
    case disabled
    /// The source has no content, and is asked again.
    case content
    /// The source has nothing to say, or the start of an activity has expired.
    case skipped
    /// A push requested by a person was not accepted, which has no consequences.
    case failed

    /// Whether there was something to send, and it was not accepted.
    var isFailure: Bool { self != .sent && self != .skipped }

    init(_ result: PushResult) {
        self =
            switch result {
            case .service(.delivered, _, _): .sent
            case .service(.dropAddress, _, _): .dropped
            case .service(.quarantineAddress, _, _): .quarantined
            case .service(.tryOtherEnvironment, _, _): .environment
            case .service(.retry, _, _): .retry
            case .service(.giveUp, _, _): .givenUp
            case .service(.stop, _, _): .stopped
            case .webhook(let response?) where response.isSuccess: .sent
            case .content(.nothing), .content(.expired): .skipped
            case .content(.failed): .content
            case .notSent: .retry
            case .webhook(let response): response?.status == 410 ? .disabled : .retry
            }
    }
}
