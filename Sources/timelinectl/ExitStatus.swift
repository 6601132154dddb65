import ArgumentParser
import TimelineClient

/// What the process ends with; documented in the help of the command itself.
enum ExitStatus {
    static let refused = ExitCode(1)
    static let usage = ExitCode(2)
    static let unreachable = ExitCode(3)
    static let unverified = ExitCode(4)
    static let missed = ExitCode(5)
    static let unwell = ExitCode(6)

    /// The parser's own statuses, in ours.
    static func of(_ status: ExitCode) -> ExitCode {
        status == .success ? .success : usage
    }

    /// The status of a call the gateway did not do.
    static func of(_ failure: GatewayFailure) -> ExitCode {
        switch failure {
        case .refused: refused
        case .connection(let error) where error.code == .badRequest: usage
        case .connection, .unreadable: unreachable
        }
    }
}
