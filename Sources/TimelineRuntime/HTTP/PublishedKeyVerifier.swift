import GatewaySigning
import TimelineGatewayClient

extension PublishedKeyVerifier {
    /// Creates a verifier of one app's notifications that uses the system's OpenSSL.
    ///
    /// - Parameter issuer: The gateway's own URL, the `iss` of its notifications. `nil` adopts that
    ///   of the first verified notification, and requires it for every later one.
    public init(connection: any GatewayConnection, app: String, issuer: String? = nil) {
        self.init(connection: connection, app: app, issuer: issuer, keys: OpenSSLKeys.self)
    }

    /// Returns the keys that a gateway publishes; `nil` if they cannot be fetched.
    package static func publishedKeys(by connection: any GatewayConnection) async -> OpenSSLKeys? {
        await keyDocument(by: connection).flatMap { OpenSSLKeys(jwks: $0) }
    }
}

/// The public keys of a gateway, as OpenSSL values.
public struct OpenSSLKeys: VerificationKeys {
    package let set: JWKSet

    /// Reads a JWK Set; returns `nil` when it is not one.
    public init?(jwks: [UInt8]) {
        guard let set = try? JWKSet(parsing: jwks) else { return nil }
        self.set = set
    }

    /// Checks that the notification is signed by the key it names.
    ///
    /// - Throws: ``VerificationFailure``: `unknownKey` or `badSignature`.
    public func check(_ notification: SignedNotification) throws(VerificationFailure) {
        guard let key = set[notification.keyID] else { throw .unknownKey }
        // The key decides the algorithm; the sender's claim is only compared with it.
        guard let algorithm = VerificationAlgorithm(named: notification.algorithm),
            key.verify(notification.signature, over: notification.signingInput, with: algorithm)
        else { throw .badSignature }
    }
}
