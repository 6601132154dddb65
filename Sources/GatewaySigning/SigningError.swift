/// Why a key, a ring of keys or a signature could not be made, read or kept.
///
/// Never carries key material, token content or what OpenSSL said about either.
package struct SigningError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What kind of failure it is; stable, for programs.
    package enum Code: String, Sendable {
        /// OpenSSL refused to generate a key, to sign or to give random bytes.
        case cryptoFailed = "crypto-failed"
        /// The text is no key of a kind this package knows (Ed25519, P-256).
        case keyUnsupported = "key-unsupported"
        /// A document (JWK Set, key ring manifest) does not have its form.
        case documentMalformed = "document-malformed"
        /// More bytes or keys than the named limit.
        case limitExceeded = "limit-exceeded"
        /// A file could not be read, written or made durable.
        case fileFailed = "file-failed"
    }

    /// The kind of failure.
    package let code: Code
    /// One sentence for a person.
    package let message: String

    /// An error of `code`, told in `message`, which must not hold secrets.
    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// "key-unsupported: the PEM text holds no private key".
    package var description: String { "\(code.rawValue): \(message)" }
}
