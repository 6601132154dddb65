import GatewayCore
import GatewayPush

/// What came of a push, in a word for people; `Deploy/push.md` says what each means.
package enum PushOutcome: String, Sendable, CaseIterable {
    /// It was taken.
    case sent
    /// The token is dead.
    case dropped
    /// Token, topic and environment do not belong together.
    case quarantined
    /// The token is tried in APNs' other environment.
    case environment
    /// It is tried again.
    case retry
    /// It is not repeated as it is.
    case givenUp = "given-up"
    /// Nothing is pushed there any more.
    case stopped
    /// The webhook is not asked any more.
    case disabled
    /// A person asked for it and it was not taken: nothing follows.
    case failed

    init(_ result: PushResult) {
        self =
            switch result {
            case .apns(.delivered, _): .sent
            case .apns(.dropAddress, _): .dropped
            case .apns(.quarantineAddress, _): .quarantined
            case .apns(.tryOtherEnvironment, _): .environment
            case .apns(.retry, _): .retry
            case .apns(.giveUp, _): .givenUp
            case .apns(.stop, _): .stopped
            case .webhook(let response?) where response.isSuccess: .sent
            case .webhook(let response): response?.status == 410 ? .disabled : .retry
            }
    }
}
