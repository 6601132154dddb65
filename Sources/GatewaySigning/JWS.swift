import WidgetModel

/// Why a signed text is not believed.
package enum JWSRejection: String, Error, Sendable, Equatable, CaseIterable {
    /// Longer than the limit of its kind.
    case tooLarge = "too-large"
    /// Not three parts of base64url, or its header is not what RFC 7515 section 4 asks for.
    case malformed
    /// `crit` is present: it demands something that is not understood here (RFC 7515 section
    /// 4.1.11), or is itself invalid.
    case criticalHeader = "critical-header"
    /// `typ` is that of another kind of message (RFC 8725 section 3.11).
    case wrongType = "wrong-type"
    /// No key is called by its `kid`.
    case unknownKey = "unknown-key"
    /// `alg` is not the algorithm of the key its `kid` names.
    case wrongAlgorithm = "wrong-algorithm"
    /// The signature is not the key's over this header and payload.
    case badSignature = "bad-signature"
}

/// Which messages a verifier takes one for, told by `typ` (RFC 7515 section 4.1.9).
package struct JWSType: Sendable {
    /// The media type without `application/`, in lower case.
    let names: [String]
    /// Whether a message may leave `typ` out.
    let isOptional: Bool

    /// `typ` of what the gateway sends to clients.
    package static let reloadName = "timeline-reload+jwt"
    /// What the gateway sends to clients; nothing else may pass for it.
    package static let reload = JWSType(names: [reloadName], isOptional: false)
    /// What backends and clients send to the gateway; many issuers leave `typ` out, and none of
    /// what the gateway signs for others does.
    package static let token = JWSType(names: ["jwt", "at+jwt"], isOptional: true)

    func accepts(_ type: String?) -> Bool {
        guard let type else { return isOptional }
        let name = type.lowercased()
        return names.contains(
            name.hasPrefix("application/") ? String(name.dropFirst(12)) : name)
    }
}

/// A signed text in the compact form (RFC 7515 section 7.1), taken apart but not yet believed.
package struct JWS: Sendable {
    /// Longest bearer token, bytes; a header field of HTTP is hardly allowed more.
    package static let tokenBytesMax = 8 * 1024
    /// Longest notification, bytes.
    package static let notificationBytesMax = 16 * 1024

    /// `alg` as its sender claims; only ever compared with the key's own.
    let algorithmName: String
    /// The name of the key that is said to have signed.
    package let kid: String
    private let type: String?
    private let signingInput: ArraySlice<UInt8>
    private let signature: [UInt8]
    /// What is said to be signed: good for finding out whose keys to try, and for nothing else.
    package let unverifiedPayload: [UInt8]

    /// Takes a compact text apart.
    ///
    /// - Parameter bytesMax: ``tokenBytesMax`` or ``notificationBytesMax``.
    /// - Throws: ``JWSRejection``: `tooLarge`, `malformed` or `criticalHeader`.
    package init(parsing compact: [UInt8], bytesMax: Int) throws(JWSRejection) {
        guard compact.count <= bytesMax else { throw .tooLarge }
        let dot = UInt8(ascii: ".")
        guard let first = compact.firstIndex(of: dot), let last = compact.lastIndex(of: dot),
            first < last, !compact[(first + 1)..<last].contains(dot),
            let headerText = Base64URL.decode(compact[..<first]),
            let payload = Base64URL.decode(compact[(first + 1)..<last]),
            let signature = Base64URL.decode(compact[(last + 1)...]),
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

    /// The payload, if one of `keys` signed it as a message of this `type`.
    ///
    /// The key is the one `kid` names, the algorithm is that key's. Nothing the sender wrote has a
    /// say in either, so neither `none` nor a public key used as an HMAC secret can pass
    /// (RFC 8725 section 2.1).
    ///
    /// - Throws: ``JWSRejection``: `wrongType`, `unknownKey`, `wrongAlgorithm` or `badSignature`.
    package func verifiedPayload(
        by keys: JWKSet, as type: JWSType
    ) throws(JWSRejection) -> [UInt8] {
        guard type.accepts(self.type) else { throw .wrongType }
        guard let key = keys[kid] else { throw .unknownKey }
        guard key.algorithm.isNamed(algorithmName) else { throw .wrongAlgorithm }
        guard key.verify(signature, over: signingInput) else { throw .badSignature }
        return unverifiedPayload
    }
}
