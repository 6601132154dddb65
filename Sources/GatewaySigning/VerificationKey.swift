import WidgetModel

/// A public key, which verifies signatures and may be published.
package struct VerificationKey: Sendable {
    private let key: EVPKey
    /// The name of the key in tokens; its RFC 7638 thumbprint unless its JWK states another one.
    package let kid: String

    /// The algorithm of the signatures that this key verifies.
    package var algorithm: SigningAlgorithm { key.algorithm }

    /// The raw key: the Ed25519 point, or x and y of the P-256 point, 32 bytes each.
    package var publicBytes: [UInt8] { key.publicBytes }

    /// The longest `kid`, bytes, which limits the cost of comparing and storing it.
    package static let kidBytesMax = 256

    init(_ key: EVPKey, kid: String) {
        self.key = key
        self.kid = kid
    }

    /// Reads a public key in PEM (SubjectPublicKeyInfo); its `kid` is its thumbprint.
    ///
    /// - Throws: ``SigningError`` (`keyUnsupported`) for anything but Ed25519 and P-256.
    package init(pem: [UInt8]) throws(SigningError) {
        guard let key = EVPKey.publicKey(pem: pem) else {
            throw SigningError(
                .keyUnsupported, "the PEM text contains no Ed25519 or P-256 public key")
        }
        self.init(key, kid: try Self.thumbprint(of: key))
    }

    /// Reads a public key from its JWK (RFC 7517 section 4, RFC 7518 section 6.2, RFC 8037 section
    /// 2). Ignores unknown members; without `kid` its name is its thumbprint.
    ///
    /// - Throws: ``SigningError`` (`keyUnsupported`) for another `kty`, `crv`, `alg` or `use`, for
    ///   missing or malformed members, and for a private key, because a published key is not
    ///   secret.
    package init(jwk: JSONObject) throws(SigningError) {
        func unsupported(_ reason: String) -> SigningError {
            SigningError(.keyUnsupported, reason)
        }
        let algorithm: SigningAlgorithm
        let coordinates: [String]
        switch (jwk["kty"]?.stringValue, jwk["crv"]?.stringValue) {
        case ("OKP", "Ed25519"): (algorithm, coordinates) = (.edDSA, ["x"])
        case ("EC", "P-256"): (algorithm, coordinates) = (.es256, ["x", "y"])
        default: throw unsupported("kty and crv name neither Ed25519 nor P-256")
        }
        guard jwk["d"] == nil else { throw unsupported("it contains the private key") }
        if let name = jwk["alg"] {
            guard let name = name.stringValue, algorithm.isNamed(name) else {
                throw unsupported("alg does not match kty and crv")
            }
        }
        if let use = jwk["use"] {
            guard use == "sig" else { throw unsupported("use is not sig") }
        }
        if let operations = jwk["key_ops"] {
            guard operations.arrayValue?.contains("verify") == true else {
                throw unsupported("key_ops does not contain verify")
            }
        }
        var bytes: [UInt8] = []
        for name in coordinates {
            guard let text = jwk[name]?.stringValue, let value = Base64.url.decode(text),
                value.count == 32
            else { throw unsupported("\(name) is not the base64url of 32 bytes") }
            bytes += value
        }
        guard let key = EVPKey.publicKey(algorithm, bytes: bytes) else {
            throw unsupported("the point is not on the curve")
        }
        switch jwk["kid"] {
        case nil: self.init(key, kid: try Self.thumbprint(of: key))
        case .string(let kid)? where !kid.isEmpty && kid.utf8.count <= Self.kidBytesMax:
            self.init(key, kid: kid)
        default: throw unsupported("kid is not a string of 1 to \(Self.kidBytesMax) bytes")
        }
    }

    /// Returns whether `signature` (64 bytes, in JWS form) is a valid signature of `message` by
    /// this key. A malformed signature is not valid.
    package func verify(_ signature: [UInt8], over message: some Collection<UInt8>) -> Bool {
        key.verify(signature, over: message)
    }

    /// The public key as a JWK: `kty`, `crv`, `x`, for P-256 `y`, `alg`, `use` and `kid`.
    package var jwk: JSONObject {
        var object = Self.requiredMembers(of: key)
        object["alg"] = .string(algorithm.rawValue)
        object["use"] = "sig"
        object["kid"] = .string(kid)
        return object
    }

    /// The public key in PEM (SubjectPublicKeyInfo).
    ///
    /// - Throws: ``SigningError`` (`cryptoFailed`) when OpenSSL is out of memory.
    package func pem() throws(SigningError) -> [UInt8] {
        guard let text = key.publicPEM else {
            throw SigningError(.cryptoFailed, "the public key could not be written as PEM")
        }
        return text
    }

    /// Returns the SHA-256 of the required members in lexical order, in base64url (RFC 7638 section
    /// 3).
    static func thumbprint(of key: EVPKey) throws(SigningError) -> String {
        let members = requiredMembers(of: key).members.sorted { $0.name < $1.name }
        var object = JSONObject()
        for member in members { object[member.name] = member.value }
        return Base64.url.string(try SHA256Digest(of: JSONValue.object(object).serialized).bytes)
    }

    private static func requiredMembers(of key: EVPKey) -> JSONObject {
        let x = JSONValue.string(Base64.url.string(Array(key.publicBytes.prefix(32))))
        return switch key.algorithm {
        case .edDSA: ["kty": "OKP", "crv": "Ed25519", "x": x]
        case .es256:
            [
                "kty": "EC", "crv": "P-256", "x": x,
                "y": .string(Base64.url.string(Array(key.publicBytes.dropFirst(32)))),
            ]
        }
    }
}

extension VerificationKey: Equatable {
    /// Returns whether both are the same public key with the same name.
    package static func == (one: Self, other: Self) -> Bool {
        one.kid == other.kid && one.algorithm == other.algorithm
            && one.key.publicBytes == other.key.publicBytes
    }
}
