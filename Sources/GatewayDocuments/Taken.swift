import WidgetModel

/// The answer to a catalog that is now in force.
package struct CatalogTaken: Codable, Sendable {
    package var app = ""
    /// The number of kinds that it declares.
    package var kinds = 0
    package var sequence: UInt64 = 0
    package var warnings: [Fault] = []
    /// The public keys of the questions to sources of content, if there are any.
    package var contentKeys: [String]?

    package init() {}
}

/// The answer to a post of changes.
package struct ChangesTaken: Codable, Sendable {
    package var accepted = 0
    package var duplicates = 0
    /// The number of events that matched no rule.
    package var unmatched = 0
    /// The number of events that matched a rule because they lack an attribute.
    package var broad = 0
    /// The highest sequence of the events posted, including duplicates.
    package var sequence: UInt64 = 0

    package init() {}
}

/// The answer to a start of Live Activities.
package struct StartTaken: Codable, Sendable, Equatable {
    package var sequence: UInt64
    /// Whether the same start was accepted before.
    package var duplicate: Bool
    /// The ids of the broadcast channel, by environment, if there is one.
    package var channels: [String: String]?

    package init(sequence: UInt64, duplicate: Bool, _ channels: [String: String]) {
        (self.sequence, self.duplicate) = (sequence, duplicate)
        self.channels = channels.isEmpty ? nil : channels
    }
}

package struct ReloadTaken: Codable, Sendable {
    package var sequence: UInt64

    package init(sequence: UInt64) { self.sequence = sequence }
}

/// The answer to a request to push again.
package struct PushesTaken: Codable, Sendable {
    package var pushes: Int

    package init(pushes: Int) { self.pushes = pushes }
}

/// A token that the gateway's own issuer signed.
package struct IssuedToken: Codable, Sendable {
    package var token: String
    package var expires: String

    package init(token: String, expires: String) {
        (self.token, self.expires) = (token, expires)
    }
}

/// A ticket for a stream, which stands for a client's token once.
package struct IssuedTicket: Codable, Sendable {
    package var ticket: String
    package var expires: String

    package init(ticket: String, expires: String) {
        (self.ticket, self.expires) = (ticket, expires)
    }
}
