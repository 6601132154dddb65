/// A kind of secret that all nodes of a cluster share.
package enum SecretKind: String, Sendable, CaseIterable {
    /// The key that signs notifications.
    case signing
    /// The key that signs what is posted to webhooks.
    case webhook
    /// The key that signs tokens of the local issuer.
    case issuer
    /// The key of TLS session tickets.
    case ticket
    /// The key that those of all keyed hashes are derived from: of version windows, events, partitions,
    /// attributes and push addresses.
    case keyHash = "hash-keys"
}

/// The times of the rotation of secrets, seconds.
package struct SecretTiming: Sendable, Equatable {
    /// The longest time that a verifier caches the published keys.
    package var cacheTime: Int64 = 300
    /// The longest time from `iat` to `exp` of what a key signs.
    package var signatureLifetime: Int64 = 600
    /// The longest time from `iat` to `exp` of a token of the local issuer.
    package var tokenLifetime: Int64 = 30 * 86_400
    /// The time after which a signing key is replaced.
    package var signingPeriod: Int64 = 30 * 86_400
    /// The time after which the ticket key is replaced.
    package var ticketPeriod: Int64 = 12 * 3_600

    /// The time after its last reading of the table at which a node is not ready, and begins to use
    /// no newer secret.
    package static let silenceMax: Int64 = 60
    /// The time between two readings of the table.
    package static let readInterval: Int64 = 30

    /// The defaults.
    package init() {}

    /// The rule of a kind's rotation.
    struct Rule: Equatable {
        /// The time from the first use of a secret to that of the next one.
        let period: Int64
        /// The time from its insertion to its first use.
        let lead: Int64
        /// The number of secrets that are valid once the newest is used.
        let kept: Int64
        /// The time that older ones stay valid after that.
        let grace: Int64
    }

    /// Returns the rule of a kind; `nil` for one that is never rotated, because windows, events and
    /// indexes would be void.
    func rule(of kind: SecretKind) -> Rule? {
        switch kind {
        case .signing, .webhook:
            Rule(
                period: signingPeriod, lead: cacheTime + Self.silenceMax, kept: 1,
                grace: signatureLifetime + cacheTime)
        case .issuer:
            Rule(
                period: signingPeriod, lead: cacheTime + Self.silenceMax, kept: 1,
                grace: tokenLifetime + cacheTime)
        case .ticket: Rule(period: ticketPeriod, lead: Self.silenceMax, kept: 3, grace: 0)
        case .keyHash: nil
        }
    }
}
