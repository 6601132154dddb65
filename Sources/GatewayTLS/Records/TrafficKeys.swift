import COpenSSL

/// The keys of one direction of a TLS 1.3 connection (RFC 8446 section 7.3).
struct TrafficKeys {
    /// The length of the longest secret of any suite.
    static let secretBytesMax = 48

    typealias Secret = InlineArray<48, UInt8>
    typealias Key = InlineArray<32, UInt8>
    typealias Nonce = InlineArray<12, UInt8>

    private(set) var secret: Secret
    private var key = Key(repeating: 0)
    private var iv = Nonce(repeating: 0)
    /// The number of the next record; never used twice with one key.
    private(set) var recordNumber: UInt64
    private var state = State.underived

    private enum State {
        /// Key and IV have to be derived from the secret.
        case underived
        /// Key and IV belong to the secret.
        case derived
        /// An update failed; no more records can be protected.
        case unusable
    }

    /// - Parameter recordNumber: The number of records that the secret's keys have already
    ///   protected.
    init(secret: Secret, recordNumber: UInt64) {
        self.secret = secret
        self.recordNumber = recordNumber
    }

    /// Derives key and IV from the secret; returns false when OpenSSL refuses.
    mutating func derive(_ suite: RecordSuite, by expander: some SecretExpanding) -> Bool {
        guard state == .underived else { return state == .derived }
        let isDerived = Self.derive(from: secret, suite, by: expander, &key, &iv)
        if isDerived { state = .derived }
        return isDerived
    }

    private static func derive(
        from secret: Secret, _ suite: RecordSuite, by expander: some SecretExpanding,
        _ key: inout Key, _ iv: inout Nonce
    ) -> Bool {
        withUnsafeBytes(of: secret) { secret in
            let secret = UnsafeRawBufferPointer(rebasing: secret[..<suite.secretBytes])
            return withUnsafeMutableBytes(of: &key) {
                expander.expand(
                    secret, label: "key", hash: suite.hash, into: $0[..<suite.keyBytes])
            }
                && withUnsafeMutableBytes(of: &iv) {
                    expander.expand(secret, label: "iv", hash: suite.hash, into: $0[...])
                }
        }
    }

    /// Switches to the next secret, key and IV (RFC 8446 section 7.2): to all of them or none.
    ///
    /// Returns false when OpenSSL refuses. No record can be protected after that: the peer may
    /// already expect the next keys, and with the present ones no record number may be used again.
    mutating func update(_ suite: RecordSuite, by expander: some SecretExpanding) -> Bool {
        var next = Secret(repeating: 0)
        var nextKey = Key(repeating: 0)
        var nextIV = Nonce(repeating: 0)
        defer {
            withUnsafeMutableBytes(of: &next) { OPENSSL_cleanse($0.baseAddress, $0.count) }
            withUnsafeMutableBytes(of: &nextKey) { OPENSSL_cleanse($0.baseAddress, $0.count) }
        }
        let isDerived = withUnsafeBytes(of: secret) { secret in
            withUnsafeMutableBytes(of: &next) {
                expander.expand(
                    UnsafeRawBufferPointer(rebasing: secret[..<suite.secretBytes]),
                    label: "traffic upd", hash: suite.hash, into: $0[..<suite.secretBytes])
            }
        }
        guard isDerived, Self.derive(from: next, suite, by: expander, &nextKey, &nextIV) else {
            state = .unusable
            return false
        }
        (secret, key, iv, recordNumber, state) = (next, nextKey, nextIV, 0, .derived)
        return true
    }

    /// Sets a cipher's key and nonce for the next record, and counts that record (RFC 8446 section
    /// 5.3). Returns false when OpenSSL refuses and after a failed update.
    @inline(__always)
    mutating func beginRecord(_ cipher: OpaquePointer) -> Bool {
        guard state != .unusable else { return false }
        var nonce = iv
        return withUnsafeMutableBytes(of: &nonce) { nonce in
            let counted =
                nonce.loadUnaligned(fromByteOffset: 4, as: UInt64.self) ^ recordNumber.bigEndian
            nonce.storeBytes(of: counted, toByteOffset: 4, as: UInt64.self)
            // Keys are updated long before the number could wrap.
            recordNumber &+= 1
            return withUnsafeBytes(of: &key) { key in
                let keepDirection: Int32 = -1
                return EVP_CipherInit_ex(
                    cipher, nil, nil, key.baseAddress?.assumingMemoryBound(to: UInt8.self),
                    nonce.baseAddress?.assumingMemoryBound(to: UInt8.self), keepDirection) == 1
            }
        }
    }
}
