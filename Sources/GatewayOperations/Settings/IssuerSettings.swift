import GatewayCore
import GatewaySigning

/// A configured issuer of tokens.
package struct IssuerSettings: Sendable, Equatable {
    /// The source of an issuer's public keys.
    package enum Keys: Sendable, Equatable {
        /// The keys of a file.
        case set(JWKSet)
        /// A URL that the issuer publishes its current keys at.
        case url(WebhookEndpoint)
    }

    package let iss: String
    package let apps: TrustedIssuer.Apps
    /// The scopes that it may grant.
    package let scopes: Set<Scope>
    package let keys: Keys

    /// The URL of its keys, if they have one.
    package var keysURL: WebhookEndpoint? {
        if case .url(let url) = keys { url } else { nil }
    }

    /// Returns the issuer with its present keys. `fetched` returns the last set fetched from a URL.
    package func trusted(_ fetched: (WebhookEndpoint) -> JWKSet) -> TrustedIssuer {
        let set =
            switch keys {
            case .set(let set): set
            case .url(let url): fetched(url)
            }
        return TrustedIssuer(iss: iss, apps: apps, scopes: scopes, keys: set)
    }
}
