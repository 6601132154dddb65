/// The two algorithms that the gateway signs with.
package enum SigningAlgorithm: String, Sendable, CaseIterable {
    /// Ed25519 (RFC 8037): `kty` OKP, `crv` Ed25519. The default.
    case edDSA = "EdDSA"
    /// ECDSA over P-256 with SHA-256 (RFC 7518 section 3.4), for verifiers without Ed25519.
    case es256 = "ES256"

    /// The length of a signature in a JWS, bytes: R and S, or r and s, of 32 bytes each.
    static let signatureBytes = 64

    /// The bytes before the raw public key in its SubjectPublicKeyInfo (RFC 8410 section 4; RFC
    /// 5480 section 2). The algorithm identifier is fixed, so all of this DER is. For P-256 it ends
    /// with the byte that marks an uncompressed point.
    var publicKeyInfoPrefix: [UInt8] {
        switch self {
        case .edDSA:
            [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00]
        case .es256:
            [
                0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01,
                0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
            ]
        }
    }

    /// The length of the raw public key after that prefix, bytes: the point, or x and y.
    var publicKeyBytes: Int {
        switch self {
        case .edDSA: 32
        case .es256: 64
        }
    }
}
