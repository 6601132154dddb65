import ArgumentParser
import TimelineRuntime

/// The exit statuses of the process; documented in the command's own help.
enum ExitStatus {
    static let refused = ExitCode(1)
    static let usage = ExitCode(2)
    static let unreachable = ExitCode(3)
    static let unverified = ExitCode(4)
    static let missed = ExitCode(5)
    static let unwell = ExitCode(6)

    /// The exit status for a failed request.
    static func of(_ failure: GatewayFailure) -> ExitCode {
        switch failure {
        case .refused: refused
        case .connection(let error) where error.code == .badRequest: usage
        case .connection, .unreadable: unreachable
        }
    }
}
