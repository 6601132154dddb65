// Not compiled by CI, which runs on Linux: kept short enough to be checked by reading.
#if canImport(CryptoKit)
    import CryptoKit
    import WidgetModel

    /// Verifies notifications against the keys the gateway publishes, with CryptoKit.
    public typealias PublishedKeyVerifier = KeyVerifier<CryptoKitKeys>

    /// The public keys of a gateway, as CryptoKit values.
    public struct CryptoKitKeys: VerificationKeys {
        private enum Key {
            case ed25519(Curve25519.Signing.PublicKey)
            case p256(P256.Signing.PublicKey)
        }

        private var keys: [String: Key] = [:]

        /// Reads a JWK Set. Keys of other types are ignored. Returns `nil` when it is not a JWK
        /// Set.
        public init?(jwks: [UInt8]) {
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
                jwk[name]?.stringValue.flatMap { SignedNotification.decoded($0[...]) }
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

        /// Returns whether the notification is signed by the key it names, forged, or names an
        /// unknown key.
        public func check(_ notification: SignedNotification) -> SignatureCheck {
            let (input, signature) = (notification.signingInput, notification.signature)
            let isSigned: Bool
            switch (keys[notification.keyID], notification.algorithm) {
            case (nil, _): return .unknownKey
            case (.ed25519(let key)?, "EdDSA"), (.ed25519(let key)?, "Ed25519"):
                isSigned = key.isValidSignature(signature, for: input)
            case (.p256(let key)?, "ES256"):
                let pair = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
                isSigned = pair.map { key.isValidSignature($0, for: input) } ?? false
            default: isSigned = false
            }
            return isSigned ? .signed : .forged
        }
    }
#endif
