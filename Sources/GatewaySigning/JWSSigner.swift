import WidgetModel

/// Signs payloads with one key and one header, which is encoded once.
package struct JWSSigner: Sendable {
    private let key: SigningKey
    /// The encoded header followed by a dot.
    private let prefix: [UInt8]

    /// The name of the signing key.
    package let kid: String

    /// Creates a signer for messages of one kind.
    ///
    /// - Parameters:
    ///   - key: The signing key, which also determines `alg` in the header.
    ///   - type: The `typ` in the header; `nil` omits it.
    ///   - kid: The verifier's name for the key; `nil` for its thumbprint.
    package init(key: SigningKey, type: String?, kid: String? = nil) {
        self.key = key
        self.kid = kid ?? key.kid
        var header: JSONObject = [
            "alg": .string(key.algorithm.rawValue), "kid": .string(self.kid),
        ]
        if let type { header["typ"] = .string(type) }
        var prefix = Base64.url.encode(JSONValue.object(header).serialized)
        prefix.append(UInt8(ascii: "."))
        self.prefix = prefix
    }

    /// Returns a signer for notifications to clients.
    package static func reloads(_ key: SigningKey) -> JWSSigner {
        JWSSigner(key: key, type: JWSType.reloadName)
    }

    /// Returns the compact serialization (RFC 7515 section 7.1) of `payload`, in ASCII. Throws
    /// ``SigningError`` (`cryptoFailed`) when OpenSSL is out of memory.
    package func sign(payload: [UInt8]) throws(SigningError) -> [UInt8] {
        var compact = prefix
        compact.reserveCapacity(
            prefix.count + Base64.url.encodedCount(payload.count) + 1
                + Base64.url.encodedCount(SigningAlgorithm.signatureBytes))
        Base64.url.append(payload, to: &compact)
        let signature = try key.sign(compact)
        compact.append(UInt8(ascii: "."))
        Base64.url.append(signature, to: &compact)
        return compact
    }
}
