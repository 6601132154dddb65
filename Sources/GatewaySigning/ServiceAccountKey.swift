import WidgetModel

/// A private RSA key, by which a sender proves to Google's token endpoint who it is. Nothing else is
/// signed with RSA.
package struct ServiceAccountKey: Sendable {
    private let key: EVPKey
    /// The public key, named by its RFC 7638 SHA-256 thumbprint.
    package let publicKey: VerificationKey

    private init(_ key: EVPKey?, _ reason: String) throws(SigningError) {
        guard let key else { throw SigningError(.keyUnsupported, reason) }
        self.key = key
        publicKey = try VerificationKey(key)
    }

    /// Generates a key. Throws ``SigningError`` without memory or entropy.
    package init() throws(SigningError) {
        try self.init(EVPKey.generate(nil), "no RSA key could be generated")
    }

    /// Reads an unencrypted private key in PEM. Throws ``SigningError`` (`keyUnsupported`) for
    /// anything but an RSA key within the limits.
    package init(pem: [UInt8]) throws(SigningError) {
        try self.init(
            EVPKey.privateKey(pem: pem, isRSA: true),
            "the PEM text contains no plain RSA private key")
    }

    /// Returns the private key as unencrypted PKCS#8 PEM. Throws ``SigningError`` (`cryptoFailed`)
    /// when OpenSSL is out of memory.
    package func pem() throws(SigningError) -> [UInt8] {
        guard let text = key.privatePEM else {
            throw SigningError(.cryptoFailed, "the private key could not be written as PEM")
        }
        return text
    }

    /// Returns claims as a JWT signed by RS256 (RFC 7523). Throws ``SigningError`` (`cryptoFailed`)
    /// when OpenSSL is out of memory.
    ///
    /// - Parameter kid: The id that Google assigned to the key.
    package func assertion(_ claims: JSONValue, kid: String) throws(SigningError) -> String {
        let header: JSONValue = ["alg": "RS256", "kid": .string(kid), "typ": "JWT"]
        var text = Base64.url.encode(header.serialized)
        text.append(UInt8(ascii: "."))
        Base64.url.append(claims.serialized, to: &text)
        guard let signature = key.sign(text) else {
            throw SigningError(.cryptoFailed, "the assertion could not be signed")
        }
        text.append(UInt8(ascii: "."))
        Base64.url.append(signature, to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}

extension ServiceAccountKey: Equatable {
    package static func == (one: Self, other: Self) -> Bool { one.publicKey == other.publicKey }
}

extension ServiceAccountKey: CustomStringConvertible, CustomReflectable {
    /// The public name only, so that printing reveals nothing.
    package var description: String { "ServiceAccountKey(\(publicKey.kid))" }
    /// An empty mirror, so that dumping a structure does not reveal the key.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
