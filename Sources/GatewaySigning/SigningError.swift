/// The reason why a key, a key ring or a signature could not be created, read or stored.
///
/// Never contains key material, token content, or OpenSSL's messages about them.
package struct SigningError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of failure; stable, for programs.
    package enum Code: String, Sendable {
        /// OpenSSL failed to generate a key, to sign or to return random bytes.
        case cryptoFailed = "crypto-failed"
        /// The text is not a key of a supported kind (Ed25519, P-256).
        case keyUnsupported = "key-unsupported"
        /// A document (JWK Set, key ring manifest) is malformed.
        case documentMalformed = "document-malformed"
        /// The input has more bytes or keys than the limit.
        case limitExceeded = "limit-exceeded"
        /// A file could not be read, written or made durable.
        case fileFailed = "file-failed"
    }

    /// The kind of failure.
    package let code: Code
    /// A sentence for display.
    package let message: String

    /// Creates an error; `message` must not contain secrets.
    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The code and the message, such as "key-unsupported: the PEM text holds no private key".
    package var description: String { "\(code.rawValue): \(message)" }
}
