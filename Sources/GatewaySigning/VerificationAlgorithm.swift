/// An algorithm that the signatures of others are verified with. There is no other one that a token
/// could make a verifier use (RFC 8725 section 3.1).
package enum VerificationAlgorithm: String, Sendable, CaseIterable {
    /// Ed25519 (RFC 8037).
    case edDSA = "EdDSA"
    /// ECDSA over P-256 with SHA-256 (RFC 7518 section 3.4).
    case es256 = "ES256"
    /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518 section 3.3), the default of most identity
    /// providers.
    case rs256 = "RS256"
    /// RSASSA-PSS with SHA-256 (RFC 7518 section 3.5).
    case ps256 = "PS256"

    /// The algorithm that the `alg` of a header or key names. `Ed25519` is the newer name for
    /// `EdDSA` with an Ed25519 key (RFC 9864 section 2.2).
    package init?(named name: String) {
        guard let algorithm = name == "Ed25519" ? .edDSA : Self(rawValue: name) else { return nil }
        self = algorithm
    }
}
