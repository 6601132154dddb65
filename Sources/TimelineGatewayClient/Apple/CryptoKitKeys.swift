// CI, which runs on Linux, compiles this against stubs: see Deploy/check-client.
#if canImport(CryptoKit)
    import CryptoKit
    import WidgetModel

    extension PublishedKeyVerifier {
        /// Creates a verifier of one app's notifications that uses CryptoKit.
        ///
        /// - Parameter issuer: The gateway's own URL, the `iss` of its notifications. `nil` adopts
        ///   that of the first verified notification, and requires it for every later one.
        public init(connection: any GatewayConnection, app: String, issuer: String? = nil) {
            self.init(connection: connection, app: app, issuer: issuer, keys: CryptoKitKeys.self)
        }
    }

    /// The public keys of a gateway, as CryptoKit values.
    struct CryptoKitKeys: VerificationKeys {
        private enum Key {
            case ed25519(Curve25519.Signing.PublicKey)
            case p256(P256.Signing.PublicKey)
        }

        private var keys: [String: Key] = [:]

        init?(jwks: [UInt8]) {
            guard let set = try? JSONValue(parsing: jwks),
                let elements = set.objectValue?["keys"]?.arrayValue
            else { return nil }
            for case .object(let jwk) in elements {
                guard let kid = jwk["kid"]?.stringValue, keys[kid] == nil else { continue }
                keys[kid] = Self.key(jwk)
            }
        }

        private static func key(_ jwk: JSONObject) -> Key? {
            func coordinate(_ name: String) -> [UInt8]? {
                jwk[name]?.stringValue.flatMap { Base64.url.decode($0.utf8) }
            }
            guard let x = coordinate("x") else { return nil }
            switch (jwk["kty"]?.stringValue, jwk["crv"]?.stringValue) {
            case ("OKP", "Ed25519"):
                return (try? Curve25519.Signing.PublicKey(rawRepresentation: x))
                    .map { .ed25519($0) }
            case ("EC", "P-256"):
                return coordinate("y").flatMap {
                    try? P256.Signing.PublicKey(rawRepresentation: x + $0)
                }.map { .p256($0) }
            default: return nil
            }
        }

        func check(_ notification: SignedNotification) throws(VerificationFailure) {
            let (input, signature) = (notification.signingInput, notification.signature)
            let isSigned: Bool
            switch (keys[notification.keyID], notification.algorithm) {
            case (nil, _): throw .unknownKey
            case (.ed25519(let key)?, "EdDSA"), (.ed25519(let key)?, "Ed25519"):
                isSigned = key.isValidSignature(signature, for: input)
            case (.p256(let key)?, "ES256"):
                let pair = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
                isSigned = pair.map { key.isValidSignature($0, for: input) } ?? false
            default: isSigned = false
            }
            guard isSigned else { throw .badSignature }
        }
    }
#endif
