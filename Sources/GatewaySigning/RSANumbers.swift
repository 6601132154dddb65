import COpenSSL

/// The modulus and the public exponent of an RSA key, big-endian without leading zeros (RFC 7518
/// section 6.3.1).
enum RSANumbers {
    /// The accepted lengths of a modulus, bits. Shorter ones are not secure (RFC 7518 section 3.3);
    /// the time to verify grows with the square of the length.
    static let modulusBits = 2_048...8_192
    /// The maximum length of an exponent, bytes. It is 65,537 almost everywhere, and the time to
    /// verify grows with its length.
    static let exponentBytesMax = 4

    /// Returns whether there are two numbers that are odd, without leading zeros and within the
    /// limits.
    static func areAccepted(_ numbers: [[UInt8]]) -> Bool {
        guard numbers.count == 2,
            numbers.allSatisfy({ ($0.first ?? 0) != 0 && ($0.last ?? 0) & 1 == 1 })
        else { return false }
        let (modulus, exponent) = (numbers[0], numbers[1])
        return modulusBits.contains(modulus.count * 8 - modulus[0].leadingZeroBitCount)
            && exponent.count <= exponentBytesMax && exponent != [1]
    }

    /// Reads the numbers of a key; `nil` unless it is an RSA key within the limits.
    static func read(from key: OpaquePointer) -> [[UInt8]]? {
        guard EVP_PKEY_is_a(key, "RSA") == 1,
            let modulus = number(OSSL_PKEY_PARAM_RSA_N, of: key),
            let exponent = number(OSSL_PKEY_PARAM_RSA_E, of: key),
            areAccepted([modulus, exponent])
        else { return nil }
        return [modulus, exponent]
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

    /// Returns the SubjectPublicKeyInfo of accepted numbers (RFC 3279 section 2.3.1).
    static func publicKeyInfo(_ numbers: [[UInt8]]) -> [UInt8] {
        let rsaEncryption: [UInt8] = [
            0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05,
            0x00,
        ]
        // A leading zero keeps a number with the highest bit set positive.
        let integers = numbers.map { element(0x02, $0[0] >= 0x80 ? [0] + $0 : $0) }
        let key = element(0x30, Array(integers.joined()))
        return element(0x30, rsaEncryption + element(0x03, [0] + key))
    }

    /// Returns an element of DER (X.690).
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
