/// A data directory lacks parts that existed when a gateway served from it.
package struct DataDirectoryLoss: Error, Equatable, CustomStringConvertible {
    /// A part that cannot be recreated without a loss.
    package enum Part: Equatable, Sendable {
        /// The log, the catalogs and the registrations.
        case database
        case ring(KeyRingName, keyFiles: Int)
    }

    let directory: String
    let parts: [Part]

    package var description: String {
        """
        \(directory) was used by a gateway before, and this is missing:
        \(parts.map { "  " + $0.description }.joined(separator: "\n"))
        \(Self.remedy)
        """
    }

    static let remedy =
        "Put the files back, or restore a backup (`timelinectl restore`). To continue without what "
        + "is missing, start once with `timeline-gateway serve --new`."
}

extension DataDirectoryLoss.Part: CustomStringConvertible {
    /// Describes the loss and the consequences of starting without it.
    package var description: String {
        switch self {
        case .database:
            "store.sqlite, the log with catalogs and registrations; without it every catalog must "
                + "be put again and every client must register again"
        case .ring(let name, let keyFiles) where keyFiles > 0:
            "\(name.rawValue)/ring.json, the order of the keys of \(name.use); `--new` uses "
                + "the \(keyFiles) that \(keyFiles == 1 ? "is" : "are") left"
        case .ring(let name, _):
            "\(name.rawValue)/, the keys of \(name.use); \(name.consequence)"
        }
    }
}

/// A key ring in a data directory; the raw value is the name of its directory.
package enum KeyRingName: String, Sendable, CaseIterable {
    /// Signs notifications.
    case notifications = "keys"
    /// Signs the tokens of the local issuer.
    case tokens = "issuer"
    case webhooks

    /// The purpose of the keys.
    fileprivate var use: String {
        switch self {
        case .notifications: "notifications"
        case .tokens: "the local issuer's tokens"
        case .webhooks: "webhooks"
        }
    }

    /// The consequence of creating new keys.
    fileprivate var consequence: String {
        switch self {
        case .notifications: "without them no existing notification can be verified"
        case .tokens: "without them every existing token is rejected"
        case .webhooks: "without them receivers must learn a new key"
        }
    }
}
