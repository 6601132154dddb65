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

    /// Whether another registration is in force than the client believed.
    var isRegistrationMismatch: Bool {
        guard case .refused(let problem) = self else { return false }
        return problem.status == 409 && problem.code == "registration-mismatch"
    }
}
