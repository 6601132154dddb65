import CPostgres

/// An error of a PostgreSQL server or of the connection to it. No case contains a payload, a
/// parameter or a secret.
package enum PostgresError: Error, Equatable, Sendable, CustomStringConvertible {
    /// TG001: the statement belongs to an older generation of the node. Nothing was written.
    case fenced
    /// TG002: another node wrote the same event, client or catalog meanwhile. Nothing was written.
    case raced
    /// TG003: the transaction does not run at `read committed`. Nothing was written.
    case wrongIsolation
    /// TG004: the login is not registered as a node.
    case unknownNode
    /// TG005: the log is closed, during a move to it or since one from it. Nothing was written.
    case logClosed
    /// A lock was not free within `lock_timeout`. Nothing was written.
    case lockTimeout
    /// The connection ended or could not be established. The outcome of what was sent is unknown.
    case connectionLost(reason: String)
    /// The node's own deadline passed. The outcome of what was sent is unknown.
    case deadline
    /// Too many requests wait for the server. Nothing was sent.
    case busy
    /// The server reported success with a warning, as it does for a commit whose wait for a standby
    /// was cancelled. The outcome may be lost with the server.
    case warned(message: String)
    /// A table, a function or a privilege is missing, or the schema has another version.
    case schema(reason: String)
    /// The server's answer does not have the expected columns.
    case unexpectedAnswer
    /// The log has a record that this program cannot read. Nothing is skipped.
    case unreadableRecord(LogRecord.Unreadable, batch: Int64)
    /// Any other error of the server, by its SQLSTATE.
    case other(sqlState: String, message: String)

    package var description: String {
        switch self {
        case .fenced: "a newer connection of the same node has taken over"
        case .raced: "another node wrote the same at the same time"
        case .wrongIsolation:
            "transactions do not run at read committed; reset default_transaction_isolation of the"
                + " login and the database"
        case .unknownNode:
            "the login is not registered as a node of the cluster; add it with the operator's role"
        case .logClosed:
            "the log is closed: a move to it is under way, or it moved to another store"
        case .lockTimeout: "a lock was not free in time"
        case .connectionLost(let reason): "no connection to the server: \(reason)"
        case .deadline: "the server did not answer in time"
        case .busy: "too many requests wait for the server"
        case .warned(let message): "the server warned instead of confirming: \(message)"
        case .schema(let reason): "the schema does not fit: \(reason)"
        case .unexpectedAnswer: "the server's answer has unexpected columns"
        case .unreadableRecord(.unknown(let version, let type), let batch):
            "the batch of the log that ends at \(batch) has a record of version \(version) and type"
                + " \(type), which this program does not know; use a newer program"
        case .unreadableRecord(.damaged, let batch):
            "the batch of the log that ends at \(batch) is damaged"
        case .other(let sqlState, let message): "\(message) (SQLSTATE \(sqlState))"
        }
    }

    /// Whether the statement certainly wrote nothing. After any other error its outcome is unknown.
    package var wroteNothing: Bool {
        switch self {
        case .fenced, .raced, .wrongIsolation, .unknownNode, .logClosed, .lockTimeout, .busy: true
        case .connectionLost, .deadline, .warned, .schema, .unexpectedAnswer,
            .unreadableRecord, .other:
            false
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

    /// Classifies an error that did not end the session.
    init(sqlState: String, message: String) {
        switch sqlState {
        case "TG001": self = .fenced
        case "TG002": self = .raced
        case "TG003": self = .wrongIsolation
        case "TG004": self = .unknownNode
        case "TG005": self = .logClosed
        case "55P03": self = .lockTimeout
        // A deadlock, which the server ended.
        case "40P01": self = .raced
        // Undefined tables, functions and columns, missing privileges, a missing schema.
        case "42P01", "42883", "42703", "42501", "3F000": self = .schema(reason: message)
        default: self = .other(sqlState: sqlState, message: message)
        }
    }
}
