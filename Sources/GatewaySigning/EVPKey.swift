import COpenSSL

/// An immutable OpenSSL key, public or private.
final class EVPKey: @unchecked Sendable {
    // Sound: nothing here modifies the key after `init`, OpenSSL 3 allows any number of threads to
    // use an unmodified key, its reference count is atomic, and only `deinit` frees it.
    private let pointer: OpaquePointer
    /// The signature algorithm of the key.
    let algorithm: SigningAlgorithm
    /// The public key: the Ed25519 point, or x and y of the P-256 point, 32 bytes each.
    let publicBytes: [UInt8]

    /// Takes ownership of a key; frees it and returns `nil` if it is neither Ed25519 nor P-256.
    init?(owning pointer: OpaquePointer) {
        guard let (algorithm, publicBytes) = Self.publicPart(of: pointer) else {
            EVP_PKEY_free(pointer)
            return nil
        }
        self.pointer = pointer
        self.algorithm = algorithm
        self.publicBytes = publicBytes
    }

    deinit {
        EVP_PKEY_free(pointer)
    }

    /// Identifies a key by its SubjectPublicKeyInfo. This excludes P-256 keys with explicit
    /// parameters or a compressed point, which have no JWK form.
    private static func publicPart(of key: OpaquePointer) -> (SigningAlgorithm, [UInt8])? {
        var start: UnsafeMutablePointer<UInt8>?
        let length = i2d_PUBKEY(key, &start)
        guard length > 0, let start else { return nil }
        defer { CRYPTO_free(start, #fileID, #line) }
        let info = UnsafeBufferPointer(start: start, count: Int(length))
        for algorithm in SigningAlgorithm.allCases {
            let prefix = algorithm.publicKeyInfoPrefix
            if info.starts(with: prefix), info.count == prefix.count + algorithm.publicKeyBytes {
                return (algorithm, Array(info.dropFirst(prefix.count)))
            }
        }
        return nil
    }

    /// Generates a private key.
    static func generate(_ algorithm: SigningAlgorithm) -> EVPKey? {
        // A failure must leave no entry behind, because TLS on the same thread reads the same error
        // queue.
        defer { ERR_clear_error() }
        let name =
            switch algorithm {
            case .edDSA: "ED25519"
            case .es256: "EC"
            }
        guard let context = EVP_PKEY_CTX_new_from_name(nil, name, nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        guard EVP_PKEY_keygen_init(context) == 1 else { return nil }
        if algorithm == .es256 {
            guard EVP_PKEY_CTX_set_group_name(context, "P-256") == 1 else { return nil }
        }
        var key: OpaquePointer?
        guard EVP_PKEY_generate(context, &key) == 1, let key else { return nil }
        return EVPKey(owning: key)
    }

    /// Creates a public key from its raw bytes; `nil` for a wrong length or a point not on the
    /// curve.
    static func publicKey(_ algorithm: SigningAlgorithm, bytes: [UInt8]) -> EVPKey? {
        defer { ERR_clear_error() }
        guard bytes.count == algorithm.publicKeyBytes else { return nil }
        let info = algorithm.publicKeyInfoPrefix + bytes
        let key = info.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            return d2i_PUBKEY(nil, &start, buffer.count)
        }
        guard let key else { return nil }
        return EVPKey(owning: key)
    }

    // MARK: Signatures

    /// Signs a message. For P-256 the result is r and s, 32 bytes each, instead of OpenSSL's DER.
    func sign(_ message: [UInt8]) -> [UInt8]? {
        defer { ERR_clear_error() }
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        let digest = algorithm == .es256 ? EVP_sha256() : nil
        guard EVP_DigestSignInit(context, nil, digest, nil, pointer) == 1 else { return nil }
        // 72 bytes suffice for the longest DER of a P-256 signature, and for an Ed25519 signature.
        var signature = [UInt8](repeating: 0, count: 72)
        var length = signature.count
        guard EVP_DigestSign(context, &signature, &length, message, message.count) == 1,
            length <= signature.count
        else { return nil }
        signature.removeLast(signature.count - length)
        return algorithm == .es256 ? ECDSASignature.fixedWidth(der: signature) : signature
    }

    /// Returns whether `signature`, in JWS form, is a valid signature of `message` by this key.
    func verify(_ signature: [UInt8], over message: some Collection<UInt8>) -> Bool {
        defer { ERR_clear_error() }
        guard signature.count == SigningAlgorithm.signatureBytes,
            let form = algorithm == .es256 ? ECDSASignature.der(fixedWidth: signature) : signature,
            let context = EVP_MD_CTX_new()
        else { return false }
        defer { EVP_MD_CTX_free(context) }
        let digest = algorithm == .es256 ? EVP_sha256() : nil
        guard EVP_DigestVerifyInit(context, nil, digest, nil, pointer) == 1 else { return false }
        let answer = message.withContiguousStorageIfAvailable { bytes in
            EVP_DigestVerify(context, form, form.count, bytes.baseAddress, bytes.count)
        }
        if let answer { return answer == 1 }
        let bytes = Array(message)
        return EVP_DigestVerify(context, form, form.count, bytes, bytes.count) == 1
    }

    // MARK: PEM

    /// The limit of PEM texts read and written, bytes; a P-256 key needs about 250.
    static let pemBytesMax = 16 * 1024

    /// Reads the private key of a PEM text; `nil` when there is none, it is encrypted or of another
    /// kind.
    static func privateKey(pem: [UInt8]) -> EVPKey? {
        read(pem) { bio in
            // Without a callback OpenSSL would ask for a passphrase at the terminal.
            PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
        }.flatMap { EVPKey(owning: $0) }
    }

    /// Reads the public key of a PEM text (SubjectPublicKeyInfo). The caller owns what it returns.
    static func publicKeyPointer(pem: [UInt8]) -> OpaquePointer? {
        read(pem) { bio in PEM_read_bio_PUBKEY(bio, nil, { _, _, _, _ in -1 }, nil) }
    }

    private static func read(
        _ pem: [UInt8], _ key: (OpaquePointer) -> OpaquePointer?
    ) -> OpaquePointer? {
        defer { ERR_clear_error() }
        guard !pem.isEmpty, pem.count <= pemBytesMax else { return nil }
        return pem.withUnsafeBytes { bytes in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else {
                return nil
            }
            defer { BIO_free(bio) }
            return key(bio)
        }
    }

    /// The private key as unencrypted PKCS#8 PEM.
    var privatePEM: [UInt8]? {
        Self.written { PEM_write_bio_PKCS8PrivateKey($0, pointer, nil, nil, 0, nil, nil) }
    }

    /// The public key as SubjectPublicKeyInfo PEM.
    var publicPEM: [UInt8]? { Self.publicPEM(of: pointer) }

    /// Returns a public key as SubjectPublicKeyInfo PEM.
    static func publicPEM(of key: OpaquePointer) -> [UInt8]? {
        written { PEM_write_bio_PUBKEY($0, key) }
    }

    private static func written(_ write: (OpaquePointer) -> Int32) -> [UInt8]? {
        defer { ERR_clear_error() }
        // Memory that is wiped when it is freed.
        guard let bio = BIO_new(BIO_s_secmem()) else { return nil }
        defer { BIO_free(bio) }
        guard write(bio) == 1 else { return nil }
        var text = [UInt8](repeating: 0, count: pemBytesMax)
        let length = BIO_read(bio, &text, Int32(text.count))
        guard length > 0, length < text.count else { return nil }
        return Array(text[..<Int(length)])
    }
}
