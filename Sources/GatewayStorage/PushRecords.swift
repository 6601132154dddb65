import Foundation

/// What is kept of one client that is pushed to.
package struct PushClientRow: Sendable, Equatable {
    /// Whose it is.
    package let key: RegistrationKey
    /// The opaque content; `nil` to remove it.
    package let payload: Data?

    /// What is kept, or no longer kept, of the client `key`.
    package init(key: RegistrationKey, payload: Data?) {
        self.key = key
        self.payload = payload
    }
}

/// One push that was tried, and what came of it.
package struct PushAttemptRow: Sendable, Equatable {
    /// Where it comes among all; 0 before it is stored.
    package let number: Int64
    /// When it ended, in milliseconds since 1970.
    package let at: Int64
    /// Whom it was for.
    package let key: RegistrationKey
    /// `widgets`, `controls`, `background` or `webhook`.
    package let channel: String
    /// What came of it, in one word.
    package let outcome: String
    /// Why, in the peer's words where it has any.
    package let reason: String?
    /// By what the peer knows it: an `apns-id` or a `webhook-id`.
    package let reference: String?
    /// How long it took.
    package let milliseconds: Int64

    /// An attempt.
    package init(
        number: Int64 = 0, at: Int64, key: RegistrationKey, channel: String, outcome: String,
        reason: String?, reference: String?, milliseconds: Int64
    ) {
        self.number = number
        self.at = at
        self.key = key
        self.channel = channel
        self.outcome = outcome
        self.reason = reason
        self.reference = reference
        self.milliseconds = milliseconds
    }
}

/// Which attempts are asked for.
package struct PushAttemptQuery: Sendable, Equatable {
    /// Those of one app.
    package var app: String
    /// Those of one client only.
    package var client: String?
    /// Those of one channel only.
    package var channel: String?
    /// Those with one outcome only.
    package var outcome: String?
    /// Those with lower numbers only.
    package var before: Int64?

    /// All of an app.
    package init(app: String) {
        self.app = app
    }
}

/// A provider token, kept so that a restart, or another gateway on the same store, does not make
/// another: APNs refuses those that come too often.
package struct ProviderTokenRow: Sendable, Equatable {
    /// Whose it is: team and key.
    package let issuer: String
    /// When it was made, in seconds since 1970.
    package let issuedAt: Int64
    /// The token. A secret: it never reaches a log.
    package let token: String

    /// A token.
    package init(issuer: String, issuedAt: Int64, token: String) {
        self.issuer = issuer
        self.issuedAt = issuedAt
        self.token = token
    }
}
