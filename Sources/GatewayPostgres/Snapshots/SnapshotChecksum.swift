import GatewaySigning

/// The checksum of a snapshot: the SHA-256 digest of the digests of its pieces, in order.
struct SnapshotChecksum: Sendable {
    private var digests: [UInt8] = []

    /// Adds the next piece.
    ///
    /// - Throws: `SigningError` when OpenSSL has no memory.
    mutating func append(_ piece: [UInt8]) throws(SigningError) {
        digests += try SHA256Digest(of: piece).bytes
    }

    /// Returns the 32 bytes of the checksum of the pieces so far.
    func value() throws(SigningError) -> [UInt8] { try SHA256Digest(of: digests).bytes }
}
