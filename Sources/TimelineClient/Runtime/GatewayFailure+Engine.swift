import WidgetModel

extension GatewayFailure {
    /// What the engine has to know of it.
    package var refusal: EngineEvent.Refusal {
        switch self {
        case .refused(let problem):
            switch problem.status {
            case 404: .unknownClient
            case _ where isRegistrationMismatch:
                .otherRegistration(digest: problem.digest)
            // A token is replaced sooner or later, so 401 and 403 are not for ever.
            case 401, 403, 408, 409, 425, 429, 500...:
                .temporary(retryAfter: problem.retryAfter.map { .seconds(max(0, $0)) })
            default: .permanent
            }
        case .connection, .unreadable: .temporary(retryAfter: nil)
        }
    }

    /// Whether asking again may succeed without anybody changing anything.
    package var mayPass: Bool {
        if case .temporary = refusal { true } else { false }
    }
}
