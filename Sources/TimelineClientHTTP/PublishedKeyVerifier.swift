import GatewaySigning
import TimelineClient

/// Verifies notifications against the keys the gateway publishes, with the system's OpenSSL.
public typealias PublishedKeyVerifier = KeyVerifier<OpenSSLKeys>

/// The public keys of a gateway, as OpenSSL values.
public struct OpenSSLKeys: VerificationKeys {
    /// The parsed key set.
    package let set: JWKSet

    /// Reads a JWK Set; returns `nil` when it is not one.
    public init?(jwks: [UInt8]) {
        guard let set = try? JWKSet(parsing: jwks) else { return nil }
        self.set = set
    }

    /// Returns whether the notification is signed by the key it names, forged, or names an unknown
    /// key.
    public func check(_ notification: SignedNotification) -> SignatureCheck {
        guard let key = set[notification.keyID] else { return .unknownKey }
        // The key decides the algorithm; the sender's claim is only compared with it.
        guard let algorithm = VerificationAlgorithm(named: notification.algorithm),
            key.verify(notification.signature, over: notification.signingInput, with: algorithm)
        else { return .forged }
        return .signed
    }
}
