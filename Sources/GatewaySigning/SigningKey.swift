import WidgetModel

/// A private key with its public key.
package struct SigningKey: Sendable {
    private let key: EVPKey
    /// The public key, named by its RFC 7638 SHA-256 thumbprint.
    package let publicKey: VerificationKey

    /// The RFC 7638 SHA-256 thumbprint of the public key, in base64url: 43 letters.
    package var kid: String { publicKey.kid }
    package var algorithm: SigningAlgorithm { key.kind == .p256 ? .es256 : .edDSA }
    /// The raw public key: the Ed25519 point, or x and y of the P-256 point, 32 bytes each.
    var publicBytes: [UInt8] { Array(key.numbers.joined()) }
    /// The public key as a JWK; never contains `d`.
    package var publicJWK: JSONObject { publicKey.jwk }

    private init(_ key: EVPKey) throws(SigningError) {
        self.key = key
        publicKey = try VerificationKey(key)
    }

    /// Generates a key. Throws ``SigningError`` (`cryptoFailed`) without memory or entropy.
    package init(generating algorithm: SigningAlgorithm = .edDSA) throws(SigningError) {
        guard let key = EVPKey.generate(algorithm) else {
            throw SigningError(.cryptoFailed, "no \(algorithm.rawValue) key could be generated")
        }
        try self.init(key)
    }

    /// Reads an unencrypted private key in PEM, PKCS#8 or older. Throws ``SigningError``
    /// (`keyUnsupported`) for anything but Ed25519 and P-256.
    package init(pem: [UInt8]) throws(SigningError) {
        guard let key = EVPKey.privateKey(pem: pem) else {
            throw SigningError(
                .keyUnsupported, "the PEM text contains no plain Ed25519 or P-256 private key")
        }
        try self.init(key)
    }

    /// Reads a private key from a PEM file. Throws ``SigningError``: `fileFailed` when the file
    /// cannot be read, `keyUnsupported` when it contains no key.
    package init(contentsOf path: String) throws(SigningError) {
        try self.init(pem: try PrivateFile.read(path, bytesMax: EVPKey.pemBytesMax))
    }

    /// Returns the private key as unencrypted PKCS#8 PEM. Throws ``SigningError`` (`cryptoFailed`)
    /// when OpenSSL is out of memory.
    package func pem() throws(SigningError) -> [UInt8] {
        guard let text = key.privatePEM else {
            throw SigningError(.cryptoFailed, "the private key could not be written as PEM")
        }
        return text
    }

    /// Writes the key to a file of mode 0600, atomically and durably. Throws ``SigningError``
    /// (`fileFailed`).
    package func save(to path: String) throws(SigningError) {
        try PrivateFile.replace(path, with: try pem())
    }

    /// Signs `message`. Returns 64 bytes in JWS form: Ed25519 as in RFC 8032, P-256 as r and s of
    /// 32 bytes each. May be called concurrently from any thread.
    ///
    /// - Throws: ``SigningError`` (`cryptoFailed`) when OpenSSL is out of memory.
    package func sign(_ message: [UInt8]) throws(SigningError) -> [UInt8] {
        guard let signature = key.sign(message) else {
            throw SigningError(.cryptoFailed, "the message could not be signed")
        }
        return signature
    }

    /// Returns the secret that this P-256 key shares with another's public one; `nil` for another
    /// kind of key, and if OpenSSL is out of memory.
    func sharedSecret(with other: EVPKey) -> [UInt8]? {
        algorithm == .es256 ? key.sharedSecret(with: other) : nil
    }
}

extension SigningKey: Equatable {
    /// Returns whether both are the same key.
    package static func == (one: Self, other: Self) -> Bool {
        one.publicKey == other.publicKey
    }
}

extension SigningKey: CustomStringConvertible, CustomReflectable {
    /// The public name only, so that printing reveals nothing.
    package var description: String { "SigningKey(\(algorithm.rawValue) \(kid))" }
    /// An empty mirror, so that dumping a structure does not reveal the key.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
