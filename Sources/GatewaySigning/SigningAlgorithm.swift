/// The two algorithms that the gateway signs with.
package enum SigningAlgorithm: String, Sendable, CaseIterable {
    /// Ed25519 (RFC 8037): `kty` OKP, `crv` Ed25519. The default.
    case edDSA = "EdDSA"
    /// ECDSA over P-256 with SHA-256 (RFC 7518 section 3.4), for verifiers without Ed25519.
    case es256 = "ES256"

    /// The length of a signature in a JWS, bytes: R and S, or r and s, of 32 bytes each.
    static let signatureBytes = 64
}
