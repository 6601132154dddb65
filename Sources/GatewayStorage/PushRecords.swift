import Foundation

/// The stored push state of one client.
package struct PushClientRow: Sendable, Equatable {
    package let key: RegistrationKey
    /// The opaque content; `nil` to remove it.
    package let payload: Data?

    package init(key: RegistrationKey, payload: Data?) {
        self.key = key
        self.payload = payload
    }
}

package struct PushAttemptRow: Sendable, Equatable {
    /// The number of the attempt; 0 before it is stored.
    package internal(set) var number: Int64
    /// The time of its end, ms since 1970.
    package let at: Int64
    /// The client that it was for.
    package let key: RegistrationKey
    /// The channel: `widgets`, `controls`, `background` or `webhook`.
    package let channel: String
    /// The result in one word.
    package let outcome: String
    /// The reason, in the peer's words if it gave any.
    package let reason: String?
    /// The id at the peer: an `apns-id` or a `webhook-id`.
    package let reference: String?
    /// The duration, ms.
    package let milliseconds: Int64
    /// The sequence of the latest log entry that it reported; `nil` if unknown.
    package let sequence: UInt64?
    /// The reason why it was made, in one word; `nil` in attempts of earlier versions.
    package let cause: String?

    package init(
        number: Int64 = 0, at: Int64, key: RegistrationKey, channel: String, outcome: String,
        reason: String?, reference: String?, milliseconds: Int64, sequence: UInt64? = nil,
        cause: String? = nil
    ) {
        self.number = number
        self.at = at
        self.key = key
        self.channel = channel
        self.outcome = outcome
        self.reason = reason
        self.reference = reference
        self.milliseconds = milliseconds
        self.sequence = sequence
        self.cause = cause
    }
}

package struct PushAttemptQuery: Sendable, Equatable {
    package var app: String
    /// The client of the attempts; `nil` for all.
    package var client: String?
    /// The channel of the attempts; `nil` for all.
    package var channel: String?
    /// The outcome of the attempts; `nil` for all.
    package var outcome: String?
    /// The upper limit of the numbers, exclusive; `nil` for none.
    package var before: Int64?

    package init(app: String) {
        self.app = app
    }
}

/// A provider token, stored so that a restart, or another gateway on the same store, does not
/// create another one: APNs rejects tokens that change too often.
package struct ProviderTokenRow: Sendable, Equatable {
    /// The issuer of the token: team and key.
    package let issuer: String
    /// The time of creation, seconds since 1970.
    package let issuedAt: Int64
    /// The token. It is secret and must never be logged.
    package let token: String

    package init(issuer: String, issuedAt: Int64, token: String) {
        self.issuer = issuer
        self.issuedAt = issuedAt
        self.token = token
    }
}
