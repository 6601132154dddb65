import CPostgres

/// An error of a PostgreSQL server or of the connection to it. No case contains a payload, a
/// parameter or a secret.
package enum PostgresError: Error, Equatable, Sendable, CustomStringConvertible {
    /// TG001, TG002: another generation leads, or another batch precedes. Nothing was written.
    case fenced
    /// The connection ended or could not be established. The outcome of what was sent is unknown.
    case connectionLost(reason: String)
    /// The node's own deadline passed. The outcome of what was sent is unknown.
    case deadline
    /// The server reported success with a warning, as it does for a commit whose wait for a standby
    /// was cancelled. The outcome may be lost with the server.
    case warned(message: String)
    /// A table, a function or a privilege is missing, or the schema has another version.
    case schema(reason: String)
    /// The server's answer does not have the expected columns.
    case unexpectedAnswer
    /// Any other error of the server, by its SQLSTATE.
    case other(sqlState: String, message: String)

    package var description: String {
        switch self {
        case .fenced: "another node took the lead"
        case .connectionLost(let reason): "no connection to the server: \(reason)"
        case .deadline:
            "the server did not answer in time; a commit waits for a standby, too, where one has to"
                + " confirm it"
        case .warned(let message): "the server warned instead of confirming: \(message)"
        case .schema(let reason): "the database does not fit: \(reason)"
        case .unexpectedAnswer: "the server's answer has unexpected columns"
        case .other(let sqlState, let message): "\(message) (SQLSTATE \(sqlState))"
        }
    }

    /// Whether the statement certainly wrote nothing. After any other error its outcome is unknown.
    package var wroteNothing: Bool { self == .fenced }

    /// Whether the server may answer later.
    package var isPassing: Bool {
        switch self {
        case .connectionLost, .deadline: true
        case .fenced, .warned, .schema, .unexpectedAnswer, .other: false
        }
    }

    /// Translates the error of a result.
    ///
    /// Only the primary message is used: detail and context may quote values.
    package init(result: OpaquePointer?) {
        let state = gateway_pq_sqlstate(result).map { String(cString: $0) } ?? ""
        let message = gateway_pq_message(result).map { String(cString: $0) } ?? "no message"
        let severity = gateway_pq_severity(result).map { String(cString: $0) } ?? ""
        // A server that ends the session may have committed before.
        self =
            severity == "FATAL" || severity == "PANIC" || state.isEmpty
            ? .connectionLost(reason: message) : Self(sqlState: state, message: message)
    }

    /// Returns why a connection could not be established, or ended.
    static func connectionLost(of connection: OpaquePointer?) -> Self {
        var message = PQerrorMessage(connection).map { String(cString: $0) } ?? "no memory"
        while message.last?.isNewline == true { message.removeLast() }
        return .connectionLost(reason: message)
    }

    /// Returns why a server is of no use; libpq's own messages name it.
    func text(of server: [String: String]) -> String {
        if case .connectionLost(let reason) = self { return reason }
        return "\(server["host"] ?? ""): \(self)"
    }

    /// Classifies an error that did not end the session.
    init(sqlState: String, message: String) {
        switch sqlState {
        case "TG001", "TG002": self = .fenced
        // Undefined tables, functions and columns, a missing schema.
        case "42P01", "42883", "42703", "3F000":
            self = .schema(reason: "\(message); `timeline-gateway cluster prepare` creates it")
        case "42501":
            self = .schema(
                reason: "\(message): a node's login needs `cluster prepare --login`, and a command"
                    + " that changes the cluster its owner")
        default: self = .other(sqlState: sqlState, message: message)
        }
    }
}
