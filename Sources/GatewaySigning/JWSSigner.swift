import WidgetModel

/// Signs payloads under one key and one header, which is encoded once.
package struct JWSSigner: Sendable {
    private let key: SigningKey
    /// The encoded header and the dot after it.
    private let prefix: [UInt8]

    /// The name of the key it signs with.
    package let kid: String

    /// Makes a signer for messages of one kind.
    ///
    /// - Parameters:
    ///   - key: signs, and gives the header its `alg`.
    ///   - type: `typ` of the header; `nil` leaves it out.
    ///   - kid: the name the verifier knows the key by, when that is not its thumbprint.
    package init(key: SigningKey, type: String?, kid: String? = nil) {
        self.key = key
        self.kid = kid ?? key.kid
        var header: JSONObject = [
            "alg": .string(key.algorithm.rawValue), "kid": .string(self.kid),
        ]
        if let type { header["typ"] = .string(type) }
        var prefix = Base64URL.encode(JSONValue.object(header).serialized)
        prefix.append(UInt8(ascii: "."))
        self.prefix = prefix
    }

    /// Makes a signer for the notifications clients receive.
    package static func reloads(_ key: SigningKey) -> JWSSigner {
        JWSSigner(key: key, type: JWSType.reloadName)
    }

    /// The compact form (RFC 7515 section 7.1) of `payload`, in ASCII.
    ///
    /// - Throws: ``SigningError`` (`cryptoFailed`) when OpenSSL has no memory.
    package func sign(payload: [UInt8]) throws(SigningError) -> [UInt8] {
        var compact = prefix
        compact.reserveCapacity(
            prefix.count + Base64URL.encodedCount(payload.count) + 1
                + Base64URL.encodedCount(SigningAlgorithm.signatureBytes))
        Base64URL.append(payload, to: &compact)
        let signature = try key.sign(compact)
        compact.append(UInt8(ascii: "."))
        Base64URL.append(signature, to: &compact)
        return compact
    }
}
