import WidgetModel

extension GatewayFailure {
    /// The failure in the engine's terms.
    package var refusal: EngineEvent.Rejection {
        switch self {
        case .refused(let problem):
            switch problem.status {
            case 404: .unknownClient
            case _ where isRegistrationMismatch:
                .otherRegistration(digest: problem.digest)
            // Tokens are replaced eventually, so 401 and 403 are not permanent.
            case 401, 403, 408, 409, 425, 429, 500...:
                .temporary(retryAfter: problem.retryAfter.map { .seconds(max(0, $0)) })
            default: .permanent
            }
        case .connection, .unreadable: .temporary(retryAfter: nil)
        }
    }

    /// Whether a retry may succeed without any other change.
    package var mayPass: Bool {
        if case .temporary = refusal { true } else { false }
    }
}
