import WidgetModel

/// The kind of message that a verifier accepts, identified by `typ` (RFC 7515 section 4.1.9).
package struct JWSType: Sendable {
    /// The media types without `application/`, in lower case.
    let names: [String]
    /// Whether a message may omit `typ`.
    let isOptional: Bool

    /// The `typ` of messages from the gateway to clients.
    package static let reloadName = "timeline-reload+jwt"
    /// Messages from the gateway to clients; no other kind is accepted as one.
    package static let reload = JWSType(names: [reloadName], isOptional: false)
    /// Tokens from backends and clients to the gateway. Many issuers omit `typ`; the gateway never
    /// omits it in messages for others.
    package static let token = JWSType(names: ["jwt", "at+jwt"], isOptional: true)

    func accepts(_ type: String?) -> Bool {
        guard let type else { return isOptional }
        let name = type.lowercased()
        return names.contains(
            name.hasPrefix("application/") ? String(name.dropFirst(12)) : name)
    }
}

/// A signed text in compact serialization (RFC 7515 section 7.1), parsed but not verified.
package struct JWS: Sendable {
    /// The longest bearer token, bytes; HTTP header fields are hardly allowed to be longer.
    package static let tokenBytesMax = 8 * 1024
    /// The longest notification, bytes.
    package static let notificationBytesMax = 16 * 1024

    /// The `alg` that its sender claims; only ever compared with the key's own algorithm.
    let algorithmName: String
    /// The name of the key that supposedly signed it.
    package let kid: String
    private let type: String?
    private let signingInput: ArraySlice<UInt8>
    private let signature: [UInt8]
    /// The unverified payload. Use it only to select the keys to try.
    package let unverifiedPayload: [UInt8]

    /// Parses a compact serialization.
    ///
    /// - Parameter bytesMax: ``tokenBytesMax`` or ``notificationBytesMax``.
    /// - Throws: ``TokenRejection``: `tooLarge`, `malformed` or `criticalHeader`.
    package init(parsing compact: [UInt8], bytesMax: Int) throws(TokenRejection) {
        guard compact.count <= bytesMax else { throw .tooLarge }
        let dot = UInt8(ascii: ".")
        guard let first = compact.firstIndex(of: dot), let last = compact.lastIndex(of: dot),
            first < last, !compact[(first + 1)..<last].contains(dot),
            let headerText = Base64.url.decode(compact[..<first]),
            let payload = Base64.url.decode(compact[(first + 1)..<last]),
            let signature = Base64.url.decode(compact[(last + 1)...]),
            // A duplicate member is a fault already, so what is read is all there is.
            let header = try? JSONValue(parsing: headerText).objectValue
        else { throw .malformed }
        guard header["crit"] == nil else { throw .criticalHeader }
        guard let algorithmName = header["alg"]?.stringValue,
            let kid = header["kid"]?.stringValue, kid.utf8.count <= VerificationKey.kidBytesMax
        else { throw .malformed }
        switch header["typ"] {
        case nil: type = nil
        case .string(let name)?: type = name
        default: throw .malformed
        }
        self.algorithmName = algorithmName
        self.kid = kid
        self.signature = signature
        signingInput = compact[..<last]
        unverifiedPayload = payload
    }

    /// Returns the payload if one of `keys` signed it as a message of this `type`.
    ///
    /// The `kid` selects the key, and the key determines the algorithm; only an RSA key allows two,
    /// and the header names one of them. The sender influences nothing else, so neither `none` nor a
    /// public key used as an HMAC secret is accepted (RFC 8725 section 2.1).
    ///
    /// - Throws: ``TokenRejection``: `wrongType`, `unknownKey`, `unusableKey`, `wrongAlgorithm`
    ///   or `badSignature`.
    package func verifiedPayload(
        by keys: JWKSet, as type: JWSType
    ) throws(TokenRejection) -> [UInt8] {
        guard type.accepts(self.type) else { throw .wrongType }
        guard let key = keys[kid] else {
            throw keys.hasUnusableKey(named: kid) ? .unusableKey : .unknownKey
        }
        guard let algorithm = VerificationAlgorithm(named: algorithmName),
            key.algorithms.contains(algorithm)
        else { throw .wrongAlgorithm }
        guard key.verify(signature, over: signingInput, with: algorithm) else {
            throw .badSignature
        }
        return unverifiedPayload
    }
}
