import WidgetModel

/// The reason why a request to the gateway failed.
public enum GatewayFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The gateway refused the request.
    case refused(ProblemDetails)
    /// The gateway could not be reached, or the exchange broke off.
    case connection(ConnectionError)
    /// The gateway's response is malformed.
    case unreadable(String)

    /// The failure as text for a terminal.
    public var description: String {
        switch self {
        case .refused(let problem): problem.description
        case .connection(let error): error.description
        case .unreadable(let what): "the gateway's response cannot be read: \(what)"
        }
    }

    /// Whether a retry may succeed without any other change. Tokens are replaced eventually, so 401
    /// and 403 are among these.
    public var mayPass: Bool {
        guard case .refused(let problem) = self else { return true }
        return switch problem.status {
        case 401, 403, 408, 425, 429, 500...: true
        case 409: !isRegistrationMismatch
        default: false
        }
    }

    /// Whether the registration in force is not the one that the client expects.
    package var isRegistrationMismatch: Bool {
        guard case .refused(let problem) = self else { return false }
        return problem.status == 409 && problem.code == "registration-mismatch"
    }
}
