/// The reason why a secret of the fleet cannot be read or written. No case contains a secret.
package enum SecretError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The file of the fleet key cannot be used.
    case keyFile(path: String, reason: String)
    /// A row was wrapped under another fleet key, for another row, or was changed.
    case notAuthentic(kind: String, name: String)
    /// OpenSSL failed.
    case cryptoFailed

    package var description: String {
        switch self {
        case .keyFile(let path, let reason): "the fleet key \(path) \(reason)"
        case .notAuthentic(let kind, let name):
            "the secret \(kind) \(name) cannot be opened: this node has another fleet key, or the"
                + " row was changed"
        case .cryptoFailed: "OpenSSL could not wrap or unwrap a secret"
        }
    }
}
