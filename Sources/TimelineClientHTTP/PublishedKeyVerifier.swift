import GatewaySigning
import TimelineClient

/// Verifies notifications against the keys the gateway publishes, with the system's OpenSSL.
public typealias PublishedKeyVerifier = KeyVerifier<OpenSSLKeys>

/// A gateway's public keys, in OpenSSL.
public struct OpenSSLKeys: VerificationKeys {
    /// The set.
    package let set: JWKSet

    /// Reads a JWK Set.
    public init?(jwks: [UInt8]) {
        guard let set = try? JWKSet(parsing: jwks) else { return nil }
        self.set = set
    }

    /// Whether the key that a notification names signed it.
    public func check(_ notification: SignedNotification) -> SignatureCheck {
        guard let key = set[notification.keyID] else { return .unknownKey }
        // The algorithm is the key's: what the sender wrote is compared and never obeyed.
        guard key.algorithm.isNamed(notification.algorithm),
            key.verify(notification.signature, over: notification.signingInput)
        else { return .forged }
        return .signed
    }
}
