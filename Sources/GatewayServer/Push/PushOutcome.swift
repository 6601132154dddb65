import GatewayCore

/// What came of a push, in a word for people; `Deploy/push.md` says what each means.
enum PushOutcome: String, Sendable, CaseIterable {
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

    /// What follows from what APNs answered.
    init(_ verdict: APNsReaction.Verdict) {
        self =
            switch verdict {
            case .delivered: .sent
            case .dropAddress: .dropped
            case .quarantineAddress: .quarantined
            case .tryOtherEnvironment: .environment
            case .retry: .retry
            case .giveUp: .givenUp
            case .stop: .stopped
            }
    }
}
