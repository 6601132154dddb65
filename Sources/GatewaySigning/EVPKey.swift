import COpenSSL

/// An immutable OpenSSL key, public or private.
final class EVPKey: @unchecked Sendable {
    // Sound: nothing here modifies the key after `init`, OpenSSL 3 allows any number of threads to
    // use an unmodified key, its reference count is atomic, and only `deinit` frees it.
    private let pointer: OpaquePointer
    let kind: KeyKind
    /// The public key: the Ed25519 point; x and y of the P-256 point; or the numbers of an RSA key.
    let numbers: [[UInt8]]

    /// Takes ownership of a key; frees it and returns `nil` if it is of no ``KeyKind``, or an RSA
    /// key beyond the limits.
    init?(owning pointer: OpaquePointer) {
        guard let (kind, numbers) = Self.publicPart(of: pointer) else {
            EVP_PKEY_free(pointer)
            return nil
        }
        self.pointer = pointer
        self.kind = kind
        self.numbers = numbers
    }

    deinit {
        EVP_PKEY_free(pointer)
    }

    /// Identifies a key by its SubjectPublicKeyInfo. This excludes P-256 keys with explicit
    /// parameters or a compressed point, which have no JWK form.
    private static func publicPart(of key: OpaquePointer) -> (KeyKind, [[UInt8]])? {
        if let numbers = RSANumbers.read(from: key) { return (.rsa, numbers) }
        var start: UnsafeMutablePointer<UInt8>?
        let length = i2d_PUBKEY(key, &start)
        guard length > 0, let start else { return nil }
        defer { CRYPTO_free(start, #fileID, #line) }
        let info = UnsafeBufferPointer(start: start, count: Int(length))
        for kind in KeyKind.allCases {
            guard let prefix = kind.publicKeyInfoPrefix, info.starts(with: prefix) else { continue }
            let (rest, size) = (Array(info.dropFirst(prefix.count)), KeyKind.coordinateBytes)
            guard rest.count == size * kind.jwk.numbers.count else { return nil }
            let starts = stride(from: 0, to: rest.count, by: size)
            return (kind, starts.map { Array(rest[$0..<($0 + size)]) })
        }
        return nil
    }

    /// Generates a private key; an RSA key of 2,048 bits without an algorithm.
    static func generate(_ algorithm: SigningAlgorithm?) -> EVPKey? {
        // A failure must leave no entry behind, because TLS on the same thread reads the same error
        // queue.
        defer { ERR_clear_error() }
        let name =
            switch algorithm {
            case .edDSA?: "ED25519"
            case .es256?: "EC"
            case nil: "RSA"
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

    /// Creates a public key from its numbers; `nil` for a wrong length, a point not on the curve,
    /// or unaccepted numbers of an RSA key.
    static func publicKey(_ kind: KeyKind, _ numbers: [[UInt8]]) -> EVPKey? {
        defer { ERR_clear_error() }
        let info: [UInt8]
        if let prefix = kind.publicKeyInfoPrefix {
            guard numbers.count == kind.jwk.numbers.count,
                numbers.allSatisfy({ $0.count == KeyKind.coordinateBytes })
            else { return nil }
            info = prefix + numbers.joined()
        } else {
            guard RSANumbers.areAccepted(numbers) else { return nil }
            info = RSANumbers.publicKeyInfo(numbers)
        }
        let key = info.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            return d2i_PUBKEY(nil, &start, buffer.count)
        }
        return key.flatMap { EVPKey(owning: $0) }
    }

    // MARK: Signatures

    private var digest: OpaquePointer? { kind == .ed25519 ? nil : EVP_sha256() }

    /// Signs a message. For P-256 the result is r and s, 32 bytes each, instead of OpenSSL's DER.
    func sign(_ message: [UInt8]) -> [UInt8]? {
        defer { ERR_clear_error() }
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        guard EVP_DigestSignInit(context, nil, digest, nil, pointer) == 1 else { return nil }
        // It suffices for the longest DER of a P-256 signature.
        var signature = [UInt8](repeating: 0, count: Int(EVP_PKEY_get_size(pointer)))
        var length = signature.count
        guard EVP_DigestSign(context, &signature, &length, message, message.count) == 1,
            length <= signature.count
        else { return nil }
        signature.removeLast(signature.count - length)
        return kind == .p256 ? ECDSASignature.fixedWidth(der: signature) : signature
    }

    /// Returns whether `signature`, in JWS form, is a valid signature of `message` by this key.
    func verify(
        _ signature: [UInt8], over message: some Collection<UInt8>,
        with algorithm: VerificationAlgorithm
    ) -> Bool {
        defer { ERR_clear_error() }
        let length = kind == .rsa ? numbers[0].count : SigningAlgorithm.signatureBytes
        guard signature.count == length,
            let form = kind == .p256 ? ECDSASignature.der(fixedWidth: signature) : signature,
            let context = EVP_MD_CTX_new()
        else { return false }
        defer { EVP_MD_CTX_free(context) }
        var options: OpaquePointer?
        guard EVP_DigestVerifyInit(context, &options, digest, nil, pointer) == 1 else {
            return false
        }
        if algorithm == .ps256 {
            // The salt has 32 bytes.
            guard EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) == 1,
                EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) == 1
            else { return false }
        }
        let answer = message.withContiguousStorageIfAvailable { bytes in
            EVP_DigestVerify(context, form, form.count, bytes.baseAddress, bytes.count)
        }
        if let answer { return answer == 1 }
        let bytes = Array(message)
        return EVP_DigestVerify(context, form, form.count, bytes, bytes.count) == 1
    }

    // MARK: Key agreement

    /// Returns the secret that this private P-256 key shares with another's public one (ECDH).
    func sharedSecret(with other: EVPKey) -> [UInt8]? {
        defer { ERR_clear_error() }
        guard let context = EVP_PKEY_CTX_new(pointer, nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var secret = [UInt8](repeating: 0, count: KeyKind.coordinateBytes)
        var length = secret.count
        guard EVP_PKEY_derive_init(context) == 1,
            EVP_PKEY_derive_set_peer(context, other.pointer) == 1,
            EVP_PKEY_derive(context, &secret, &length) == 1, length == secret.count
        else { return nil }
        return secret
    }

    // MARK: PEM

    /// The limit of PEM texts read and written, bytes; a P-256 key needs about 250.
    static let pemBytesMax = 16 * 1024

    /// Reads the private key of a PEM text; `nil` when there is none, it is encrypted or of another
    /// kind.
    static func privateKey(pem: [UInt8], isRSA: Bool = false) -> EVPKey? {
        // Without a callback OpenSSL would ask for a passphrase at the terminal.
        let key = read(pem) { PEM_read_bio_PrivateKey($0, nil, { _, _, _, _ in -1 }, nil) }
        return (key?.kind == .rsa) == isRSA ? key : nil
    }

    /// Reads the public key of a PEM text (SubjectPublicKeyInfo).
    static func publicKey(pem: [UInt8]) -> EVPKey? {
        read(pem) { PEM_read_bio_PUBKEY($0, nil, { _, _, _, _ in -1 }, nil) }
    }

    private static func read(_ pem: [UInt8], _ key: (OpaquePointer) -> OpaquePointer?) -> EVPKey? {
        defer { ERR_clear_error() }
        guard !pem.isEmpty, pem.count <= pemBytesMax else { return nil }
        return pem.withUnsafeBytes { bytes in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else {
                return nil
            }
            defer { BIO_free(bio) }
            return key(bio).flatMap { EVPKey(owning: $0) }
        }
    }

    /// The private key as unencrypted PKCS#8 PEM.
    var privatePEM: [UInt8]? {
        Self.written { PEM_write_bio_PKCS8PrivateKey($0, pointer, nil, nil, 0, nil, nil) }
    }

    /// The public key as SubjectPublicKeyInfo PEM.
    var publicPEM: [UInt8]? { Self.written { PEM_write_bio_PUBKEY($0, pointer) } }

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
