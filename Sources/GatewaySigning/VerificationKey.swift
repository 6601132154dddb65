import WidgetModel

/// A public key, which verifies signatures and may be published.
package struct VerificationKey: Sendable {
    private enum Material {
        case elliptic(EVPKey)
        case rsa(RSAPublicKey)
    }

    private let material: Material
    /// The name of the key in tokens; its RFC 7638 thumbprint unless its JWK states another one.
    package let kid: String
    /// The algorithms of the signatures that this key verifies: one, or two for an RSA key whose
    /// JWK has no `alg`.
    package let algorithms: [VerificationAlgorithm]

    /// The longest `kid`, bytes, which limits the cost of comparing and storing it.
    package static let kidBytesMax = 256

    init(_ key: EVPKey, kid: String) {
        material = .elliptic(key)
        self.kid = kid
        algorithms = [VerificationAlgorithm(key.algorithm)]
    }

    private init(_ key: RSAPublicKey, kid: String, algorithms: [VerificationAlgorithm]) {
        material = .rsa(key)
        self.kid = kid
        self.algorithms = algorithms
    }

    /// The kinds of keys that are accepted, in words.
    package static let kinds =
        "Ed25519, P-256, or RSA of \(RSAPublicKey.modulusBits.lowerBound) to "
        + "\(RSAPublicKey.modulusBits.upperBound) bits"
    private static let rsaAlgorithms: [VerificationAlgorithm] = [.rs256, .ps256]

    /// Reads a public key in PEM (SubjectPublicKeyInfo); its `kid` is its thumbprint.
    ///
    /// - Throws: ``SigningError`` (`keyUnsupported`) for anything but ``kinds``.
    package init(pem: [UInt8]) throws(SigningError) {
        // Each kind of key takes ownership of a pointer of its own.
        if let pointer = EVPKey.publicKeyPointer(pem: pem), let key = EVPKey(owning: pointer) {
            self.init(key, kid: try Self.thumbprint(of: key))
        } else if let pointer = EVPKey.publicKeyPointer(pem: pem),
            let key = RSAPublicKey(owning: pointer)
        {
            let kid = try Self.thumbprint(of: Self.requiredMembers(of: key))
            self.init(key, kid: kid, algorithms: Self.rsaAlgorithms)
        } else {
            throw SigningError(
                .keyUnsupported, "the PEM text contains no public key: \(Self.kinds)")
        }
    }

    /// Reads a public key from its JWK (RFC 7517 section 4, RFC 7518 section 6, RFC 8037 section
    /// 2). Ignores unknown members; without `kid` its name is its thumbprint.
    ///
    /// - Throws: ``SigningError`` (`keyUnsupported`) for another `kty`, `crv`, `alg` or `use`, for
    ///   missing or malformed members, and for a private key, because a published key is not
    ///   secret.
    package init(jwk: JSONObject) throws(SigningError) {
        func unsupported(_ reason: String) -> SigningError {
            SigningError(.keyUnsupported, reason)
        }
        var algorithms: [VerificationAlgorithm]
        let elliptic: (SigningAlgorithm, coordinates: [String])?
        switch (jwk["kty"]?.stringValue, jwk["crv"]?.stringValue) {
        case ("OKP", "Ed25519"): (algorithms, elliptic) = ([.edDSA], (.edDSA, ["x"]))
        case ("EC", "P-256"): (algorithms, elliptic) = ([.es256], (.es256, ["x", "y"]))
        case ("RSA", _): (algorithms, elliptic) = (Self.rsaAlgorithms, nil)
        default: throw unsupported("kty and crv name none of these: \(Self.kinds)")
        }
        guard jwk["d"] == nil else { throw unsupported("it contains the private key") }
        if let name = jwk["alg"] {
            guard let name = name.stringValue, let named = VerificationAlgorithm(named: name),
                algorithms.contains(named)
            else {
                let accepted = algorithms.map(\.rawValue).joined(separator: " or ")
                throw unsupported("alg is not \(accepted)")
            }
            algorithms = [named]
        }
        if let use = jwk["use"] {
            guard use == "sig" else { throw unsupported("use is not sig") }
        }
        if let operations = jwk["key_ops"] {
            guard operations.arrayValue?.contains("verify") == true else {
                throw unsupported("key_ops does not contain verify")
            }
        }
        var kid: String?
        switch jwk["kid"] {
        case nil: kid = nil
        case .string(let name)? where !name.isEmpty && name.utf8.count <= Self.kidBytesMax:
            kid = name
        default: throw unsupported("kid is not a string of 1 to \(Self.kidBytesMax) bytes")
        }
        guard let elliptic else {
            guard let modulus = jwk["n"]?.stringValue.flatMap({ Base64.url.decode($0) }),
                let exponent = jwk["e"]?.stringValue.flatMap({ Base64.url.decode($0) }),
                let key = RSAPublicKey(.init(modulus: modulus, exponent: exponent))
            else {
                let bits = RSAPublicKey.modulusBits
                throw unsupported(
                    "n and e are not the numbers of an RSA key of \(bits.lowerBound) to "
                        + "\(bits.upperBound) bits with an exponent of at most "
                        + "\(RSAPublicKey.exponentBytesMax) bytes")
            }
            let name = try Self.name(kid, or: Self.requiredMembers(of: key))
            self.init(key, kid: name, algorithms: algorithms)
            return
        }
        var bytes: [UInt8] = []
        for name in elliptic.coordinates {
            guard let text = jwk[name]?.stringValue, let value = Base64.url.decode(text),
                value.count == 32
            else { throw unsupported("\(name) is not the base64url of 32 bytes") }
            bytes += value
        }
        guard let key = EVPKey.publicKey(elliptic.0, bytes: bytes) else {
            throw unsupported("the point is not on the curve")
        }
        self.init(key, kid: try Self.name(kid, or: Self.requiredMembers(of: key)))
    }

    /// Returns whether `signature`, in JWS form, is a valid signature of `message` by this key with
    /// `algorithm`, which is the first of ``algorithms`` by default. A malformed signature is not
    /// valid, and no signature is with an algorithm that is not one of ``algorithms``.
    package func verify(
        _ signature: [UInt8], over message: some Collection<UInt8>,
        with algorithm: VerificationAlgorithm? = nil
    ) -> Bool {
        let algorithm = algorithm ?? algorithms[0]
        guard algorithms.contains(algorithm) else { return false }
        return switch material {
        case .elliptic(let key): key.verify(signature, over: message)
        case .rsa(let key): key.verify(signature, over: message, isPSS: algorithm == .ps256)
        }
    }

    /// The public key as a JWK: `kty`, its numbers, `alg` if it is one, `use` and `kid`.
    package var jwk: JSONObject {
        var object = requiredMembers
        if algorithms.count == 1 { object["alg"] = .string(algorithms[0].rawValue) }
        object["use"] = "sig"
        object["kid"] = .string(kid)
        return object
    }

    /// The public key in PEM (SubjectPublicKeyInfo).
    ///
    /// - Throws: ``SigningError`` (`cryptoFailed`) when OpenSSL is out of memory.
    package func pem() throws(SigningError) -> [UInt8] {
        let text =
            switch material {
            case .elliptic(let key): key.publicPEM
            case .rsa(let key): key.pem
            }
        guard let text else {
            throw SigningError(.cryptoFailed, "the public key could not be written as PEM")
        }
        return text
    }

    private static func name(
        _ kid: String?, or required: JSONObject
    ) throws(SigningError) -> String {
        if let kid { return kid }
        return try thumbprint(of: required)
    }

    /// Returns the name of an Ed25519 or P-256 key without another one.
    static func thumbprint(of key: EVPKey) throws(SigningError) -> String {
        try thumbprint(of: requiredMembers(of: key))
    }

    /// Returns the SHA-256 of the required members in lexical order, in base64url (RFC 7638 section
    /// 3).
    private static func thumbprint(of required: JSONObject) throws(SigningError) -> String {
        let members = required.members.sorted { $0.name < $1.name }
        var object = JSONObject()
        for member in members { object[member.name] = member.value }
        return Base64.url.string(try SHA256Digest(of: JSONValue.object(object).serialized).bytes)
    }

    private var requiredMembers: JSONObject {
        switch material {
        case .elliptic(let key): Self.requiredMembers(of: key)
        case .rsa(let key): Self.requiredMembers(of: key)
        }
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

    private static func requiredMembers(of key: RSAPublicKey) -> JSONObject {
        [
            "kty": "RSA", "n": .string(Base64.url.string(key.numbers.modulus)),
            "e": .string(Base64.url.string(key.numbers.exponent)),
        ]
    }
}

extension VerificationKey: Equatable {
    /// Returns whether both are the same public key with the same name and algorithms.
    package static func == (one: Self, other: Self) -> Bool {
        guard one.kid == other.kid, one.algorithms == other.algorithms else { return false }
        return switch (one.material, other.material) {
        case (.elliptic(let one), .elliptic(let other)):
            one.algorithm == other.algorithm && one.publicBytes == other.publicBytes
        case (.rsa(let one), .rsa(let other)): one.numbers == other.numbers
        default: false
        }
    }
}
