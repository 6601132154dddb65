import WidgetModel

/// A public key, which verifies signatures and may be published.
package struct VerificationKey: Sendable {
    private let key: EVPKey
    /// The name of the key in tokens; its RFC 7638 thumbprint unless its JWK states another one.
    package let kid: String
    /// The algorithms of the signatures that this key verifies: one, or two for an RSA key whose
    /// JWK has no `alg`.
    package let algorithms: [VerificationAlgorithm]

    /// The longest `kid`, bytes, which limits the cost of comparing and storing it.
    package static let kidBytesMax = 256

    /// Names a key; by default it is named by its thumbprint, and verifies what its kind does.
    init(
        _ key: EVPKey, kid: String? = nil, algorithms: [VerificationAlgorithm]? = nil
    ) throws(SigningError) {
        self.key = key
        self.algorithms = algorithms ?? key.kind.algorithms
        if let kid {
            self.kid = kid
        } else {
            self.kid = try Self.thumbprint(of: key)
        }
    }

    /// The kinds of keys that are accepted, in words.
    package static let kinds =
        "Ed25519, P-256, or RSA of \(RSANumbers.modulusBits.lowerBound) to "
        + "\(RSANumbers.modulusBits.upperBound) bits"

    /// Reads a public key in PEM (SubjectPublicKeyInfo); its `kid` is its thumbprint. Throws
    /// ``SigningError`` (`keyUnsupported`) for anything but ``kinds``.
    package init(pem: [UInt8]) throws(SigningError) {
        guard let key = EVPKey.publicKey(pem: pem) else {
            throw SigningError(
                .keyUnsupported, "the PEM text contains no public key: \(Self.kinds)")
        }
        try self.init(key)
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
        let (type, curve) = (jwk["kty"]?.stringValue, jwk["crv"]?.stringValue)
        guard
            let kind = KeyKind.allCases.first(where: {
                $0.jwk.type == type && ($0.jwk.curve == nil || $0.jwk.curve == curve)
            })
        else { throw unsupported("kty and crv name none of these: \(Self.kinds)") }
        var algorithms = kind.algorithms
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
        let names = kind.jwk.numbers
        let numbers = names.map { jwk[$0]?.stringValue.flatMap { Base64.url.decode($0) } }
        if kind != .rsa,
            let wrong = numbers.firstIndex(where: { $0?.count != KeyKind.coordinateBytes })
        {
            throw unsupported("\(names[wrong]) is not the base64url of 32 bytes")
        }
        guard let key = EVPKey.publicKey(kind, numbers.compactMap { $0 }) else {
            let bits = RSANumbers.modulusBits
            throw unsupported(
                kind != .rsa
                    ? "the point is not on the curve"
                    : "n and e are not the numbers of an RSA key of \(bits.lowerBound) to "
                        + "\(bits.upperBound) bits with an exponent of at most "
                        + "\(RSANumbers.exponentBytesMax) bytes")
        }
        try self.init(key, kid: kid, algorithms: algorithms)
    }

    /// Returns whether `signature`, in JWS form, is this key's valid signature of `message` with
    /// `algorithm`, by default the first of ``algorithms``. Returns false for a malformed signature
    /// and for an algorithm that is not one of ``algorithms``.
    package func verify(
        _ signature: [UInt8], over message: some Collection<UInt8>,
        with algorithm: VerificationAlgorithm? = nil
    ) -> Bool {
        let algorithm = algorithm ?? algorithms[0]
        guard algorithms.contains(algorithm) else { return false }
        return key.verify(signature, over: message, with: algorithm)
    }

    /// The public key as a JWK: `kty`, its numbers, `alg` if it is one, `use` and `kid`.
    package var jwk: JSONObject {
        var object = Self.requiredMembers(of: key)
        if algorithms.count == 1 { object["alg"] = .string(algorithms[0].rawValue) }
        object["use"] = "sig"
        object["kid"] = .string(kid)
        return object
    }

    /// The public key in PEM (SubjectPublicKeyInfo). Throws ``SigningError`` (`cryptoFailed`) when
    /// OpenSSL is out of memory.
    package func pem() throws(SigningError) -> [UInt8] {
        guard let text = key.publicPEM else {
            throw SigningError(.cryptoFailed, "the public key could not be written as PEM")
        }
        return text
    }

    /// Returns the SHA-256 of the required members in lexical order, in base64url (RFC 7638 section
    /// 3).
    private static func thumbprint(of key: EVPKey) throws(SigningError) -> String {
        let members = requiredMembers(of: key).members.sorted { $0.name < $1.name }
        let object = JSONValue.object(JSONObject(uniqueMembers: members))
        return Base64.url.string(try SHA256Digest(of: object.serialized).bytes)
    }

    private static func requiredMembers(of key: EVPKey) -> JSONObject {
        let (type, curve, names) = key.kind.jwk
        var object: JSONObject = ["kty": .string(type)]
        object["crv"] = curve.map { .string($0) }
        for (name, number) in zip(names, key.numbers) {
            object[name] = .string(Base64.url.string(number))
        }
        return object
    }
}

extension VerificationKey: Equatable {
    /// Returns whether both are the same public key with the same name and algorithms.
    package static func == (one: Self, other: Self) -> Bool {
        one.kid == other.kid && one.algorithms == other.algorithms
            && one.key.kind == other.key.kind && one.key.numbers == other.key.numbers
    }
}
