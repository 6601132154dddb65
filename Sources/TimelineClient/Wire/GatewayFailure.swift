import WidgetModel

/// Why the gateway did not do what a call asked for.
public enum GatewayFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// It answered, and refused.
    case refused(ProblemDetails)
    /// It could not be asked.
    case connection(ConnectionError)
    /// It answered something that cannot be read.
    case unreadable(String)

    /// For a terminal.
    public var description: String {
        switch self {
        case .refused(let problem): problem.description
        case .connection(let error): error.description
        case .unreadable(let what): "the gateway's answer cannot be read: \(what)"
        }
    }

    /// What the engine has to know of it.
    var refusal: EngineEvent.Refusal {
        switch self {
        case .refused(let problem):
            switch problem.status {
            case 404: .unknownClient
            // A token is replaced sooner or later, so 401 and 403 are not for ever.
            case 401, 403, 408, 409, 425, 429, 500...:
                .temporary(retryAfter: problem.retryAfter.map { .seconds(max(0, $0)) })
            default: .permanent
            }
        case .connection, .unreadable: .temporary(retryAfter: nil)
        }
    }
}

extension GatewayFailure {
    /// Whether asking again may succeed without anybody changing anything.
    package var mayPass: Bool {
        if case .temporary = refusal { true } else { false }
    }
}
