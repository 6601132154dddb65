import WidgetModel

/// A notification in compact serialization (RFC 7515 section 7.1), parsed but not verified.
public struct SignedNotification: Sendable {
    /// The limit of a notification, bytes.
    public static let bytesMax = 16 * 1024
    /// The limit of a key's name, bytes.
    static let keyIDBytesMax = 256

    /// The `alg` that its sender claims; only ever compared with the key's own algorithm.
    public let algorithm: String
    /// The `kid`: the name of the key that supposedly signed it.
    public let keyID: String
    /// The bytes that the signature covers.
    public let signingInput: [UInt8]
    /// The signature. A valid one has 64 bytes with both algorithms, Ed25519 and ES256.
    public let signature: [UInt8]
    /// The claims in JSON, not verified.
    let payload: [UInt8]

    /// Parses a notification.
    ///
    /// - Throws: ``VerificationFailure`` (`malformed`) when it is longer than ``bytesMax``, is not
    ///   a compact serialization, has a `crit` header, or is a token of another type.
    init(_ text: String) throws(VerificationFailure) {
        guard text.utf8.count <= Self.bytesMax else {
            throw VerificationFailure(.malformed, "it is longer than \(Self.bytesMax) bytes")
        }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let headerText = Base64.url.decode(parts[0].utf8),
            let payload = Base64.url.decode(parts[1].utf8),
            let signature = Base64.url.decode(parts[2].utf8),
            // A duplicate member is a fault already, so what is read is all there is.
            let header = try? JSONValue(parsing: headerText).objectValue,
            let algorithm = header["alg"]?.stringValue, let keyID = header["kid"]?.stringValue,
            keyID.utf8.count <= Self.keyIDBytesMax
        else {
            throw VerificationFailure(.malformed, "it is not a signed JWT in the compact form")
        }
        guard header["crit"] == nil else {
            throw VerificationFailure(
                .malformed, "its header has crit, and no critical extension is supported")
        }
        let type = header["typ"]?.stringValue?.lowercased() ?? ""
        guard [ReloadNotification.typ, "application/\(ReloadNotification.typ)"].contains(type)
        else {
            throw VerificationFailure(.malformed, "its typ is not \(ReloadNotification.typ)")
        }
        self.algorithm = algorithm
        self.keyID = keyID
        self.payload = payload
        self.signature = signature
        signingInput = Array(text.utf8.prefix(parts[0].utf8.count + 1 + parts[1].utf8.count))
    }
}

/// The public keys of a gateway, as values of a library that verifies signatures: OpenSSL on Linux,
/// CryptoKit on Apple's systems.
public protocol VerificationKeys: Sendable {
    /// Reads a JWK Set (RFC 7517). Ignores malformed keys and types other than Ed25519 and P-256;
    /// returns `nil` when it is not a JWK Set.
    init?(jwks: [UInt8])

    /// Checks the signature with the key that the notification names and that key's own algorithm.
    /// The notification's `alg` must only be compared with it.
    ///
    /// - Throws: ``VerificationFailure``: ``VerificationFailure/unknownKey`` when no key has this
    ///   name, ``VerificationFailure/badSignature`` when the key did not sign the notification, or
    ///   not with its own algorithm.
    func check(_ notification: SignedNotification) throws(VerificationFailure)
}
