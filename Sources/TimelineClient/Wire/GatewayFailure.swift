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
}
