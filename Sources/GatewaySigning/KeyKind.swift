/// A kind of public key, with its forms in DER and as a JWK. The gateway signs nothing with RSA,
/// but most identity providers do.
enum KeyKind: CaseIterable {
    case ed25519, p256, rsa

    /// The algorithms of signatures by such a key.
    var algorithms: [VerificationAlgorithm] {
        switch self {
        case .ed25519: [.edDSA]
        case .p256: [.es256]
        case .rsa: [.rs256, .ps256]
        }
    }

    /// The `kty` and `crv` of a JWK, and the names of its numbers (RFC 7518 section 6, RFC 8037
    /// section 2).
    var jwk: (type: String, curve: String?, numbers: [String]) {
        switch self {
        case .ed25519: ("OKP", "Ed25519", ["x"])
        case .p256: ("EC", "P-256", ["x", "y"])
        case .rsa: ("RSA", nil, ["n", "e"])
        }
    }

    /// The length of each number that is a coordinate, bytes.
    static let coordinateBytes = 32

    /// The bytes before the coordinates in a SubjectPublicKeyInfo (RFC 8410 section 4; RFC 5480
    /// section 2); `nil` for RSA. The algorithm identifier is fixed, so all of this DER is. For
    /// P-256 it ends with the byte that marks an uncompressed point.
    var publicKeyInfoPrefix: [UInt8]? {
        switch self {
        case .ed25519:
            [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00]
        case .p256:
            [
                0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01,
                0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
            ]
        case .rsa: nil
        }
    }
}
