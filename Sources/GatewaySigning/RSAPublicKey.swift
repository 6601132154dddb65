import COpenSSL

/// An immutable RSA public key of OpenSSL. The gateway signs nothing with RSA, but most identity
/// providers do.
final class RSAPublicKey: @unchecked Sendable {
    // Sound: nothing here modifies the key after `init`, OpenSSL 3 allows any number of threads to
    // use an unmodified key, its reference count is atomic, and only `deinit` frees it.
    private let pointer: OpaquePointer
    /// The modulus and the public exponent, big-endian without leading zeros.
    let numbers: Numbers

    /// The numbers of a key (RFC 7518 section 6.3.1).
    struct Numbers: Equatable {
        var modulus: [UInt8]
        var exponent: [UInt8]
    }

    /// The accepted lengths of a modulus, bits. Shorter ones are not secure (RFC 7518 section 3.3);
    /// the time to verify grows with the square of the length.
    static let modulusBits = 2_048...8_192
    /// The maximum length of an exponent, bytes. It is 65,537 almost everywhere, and the time to
    /// verify grows with its length.
    static let exponentBytesMax = 4

    /// Takes ownership of a key; frees it and returns `nil` unless it is an RSA key within the
    /// limits.
    init?(owning pointer: OpaquePointer) {
        guard EVP_PKEY_is_a(pointer, "RSA") == 1,
            let modulus = Self.number(OSSL_PKEY_PARAM_RSA_N, of: pointer),
            let exponent = Self.number(OSSL_PKEY_PARAM_RSA_E, of: pointer),
            Self.areAccepted(Numbers(modulus: modulus, exponent: exponent))
        else {
            EVP_PKEY_free(pointer)
            return nil
        }
        self.pointer = pointer
        numbers = Numbers(modulus: modulus, exponent: exponent)
    }

    deinit {
        EVP_PKEY_free(pointer)
    }

    /// Creates a key from its numbers; `nil` for lengths beyond the limits, leading zeros, or an
    /// even number.
    convenience init?(_ numbers: Numbers) {
        defer { ERR_clear_error() }
        guard Self.areAccepted(numbers) else { return nil }
        let info = DER.publicKeyInfo(rsa: numbers)
        let key = info.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            return d2i_PUBKEY(nil, &start, buffer.count)
        }
        guard let key else { return nil }
        self.init(owning: key)
    }

    private static func areAccepted(_ numbers: Numbers) -> Bool {
        guard let first = numbers.modulus.first, first != 0,
            modulusBits.contains(numbers.modulus.count * 8 - first.leadingZeroBitCount),
            numbers.modulus.last.map({ $0 & 1 == 1 }) == true
        else { return false }
        guard let first = numbers.exponent.first, first != 0,
            numbers.exponent.count <= exponentBytesMax, numbers.exponent != [1],
            numbers.exponent.last.map({ $0 & 1 == 1 }) == true
        else { return false }
        return true
    }

    private static func number(_ name: String, of key: OpaquePointer) -> [UInt8]? {
        defer { ERR_clear_error() }
        var number: OpaquePointer?
        guard EVP_PKEY_get_bn_param(key, name, &number) == 1, let number else { return nil }
        defer { BN_free(number) }
        var bytes = [UInt8](repeating: 0, count: Int(BN_num_bits(number) + 7) / 8)
        guard BN_bn2bin(number, &bytes) == Int32(bytes.count) else { return nil }
        return bytes
    }

    /// Returns whether `signature` is a valid signature of `message` by this key, as PKCS #1 v1.5
    /// or as PSS with a salt of 32 bytes.
    func verify(_ signature: [UInt8], over message: some Collection<UInt8>, isPSS: Bool) -> Bool {
        defer { ERR_clear_error() }
        guard signature.count == numbers.modulus.count, let context = EVP_MD_CTX_new() else {
            return false
        }
        defer { EVP_MD_CTX_free(context) }
        var options: OpaquePointer?
        guard EVP_DigestVerifyInit(context, &options, EVP_sha256(), nil, pointer) == 1 else {
            return false
        }
        if isPSS {
            guard EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) == 1,
                EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) == 1
            else { return false }
        }
        let bytes = Array(message)
        return EVP_DigestVerify(context, signature, signature.count, bytes, bytes.count) == 1
    }

    /// The key as SubjectPublicKeyInfo PEM.
    var pem: [UInt8]? { EVPKey.publicPEM(of: pointer) }
}

/// The few structures of DER that an RSA key needs (X.690).
private enum DER {
    /// Returns the SubjectPublicKeyInfo of an RSA key (RFC 3279 section 2.3.1).
    static func publicKeyInfo(rsa numbers: RSAPublicKey.Numbers) -> [UInt8] {
        let rsaEncryption: [UInt8] = [
            0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05,
            0x00,
        ]
        let key = element(0x30, integer(numbers.modulus) + integer(numbers.exponent))
        return element(0x30, rsaEncryption + element(0x03, [0] + key))
    }

    private static func integer(_ bytes: [UInt8]) -> [UInt8] {
        // A leading zero keeps a number with the highest bit set positive.
        let isHigh = bytes.first.map { $0 >= 0x80 } ?? true
        return element(0x02, isHigh ? [0] + bytes : bytes)
    }

    private static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        var rest = content.count
        while rest > 0 {
            length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        }
        let prefix =
            content.count < 0x80 ? [UInt8(content.count)] : [0x80 | UInt8(length.count)] + length
        return [tag] + prefix + content
    }
}
