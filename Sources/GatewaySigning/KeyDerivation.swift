import COpenSSL

/// Returns a key for one use, derived from `secret` by HKDF with SHA-256 (RFC 5869) without salt.
/// `use` is the derivation's context: the key of one use does not reveal that of another.
///
/// - Throws: ``SigningError`` (`cryptoFailed`) when OpenSSL has no HMAC or no memory.
package func derivedKey(
    from secret: [UInt8], for use: String, count: Int
) throws(SigningError) -> [UInt8] {
    try derivedKey(
        from: secret, salt: [UInt8](repeating: 0, count: hashBytes), for: Array(use.utf8),
        count: count)
}

private let hashBytes = 32

/// Returns a key derived from `secret` and `salt` by HKDF with SHA-256 (RFC 5869); `use` is its
/// `info`. Throws as ``derivedKey(from:for:count:)``.
func derivedKey(
    from secret: [UInt8], salt: [UInt8], for use: [UInt8], count: Int
) throws(SigningError) -> [UInt8] {
    precondition(count <= 255 * hashBytes, "a count our own code chooses")
    var extracted = try hmac(secret, key: salt)
    defer { OPENSSL_cleanse(&extracted, extracted.count) }
    var (key, block): ([UInt8], [UInt8]) = ([], [])
    for number in 0..<(count + hashBytes - 1) / hashBytes {
        block = try hmac(block + use + [UInt8(number + 1)], key: extracted)
        key += block
    }
    return Array(key.prefix(count))
}

private func hmac(_ message: [UInt8], key: [UInt8]) throws(SigningError) -> [UInt8] {
    var (code, count) = ([UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE)), 0)
    let end = EVP_Q_mac(
        nil, "HMAC", nil, "SHA256", nil, key, key.count, message, message.count, &code,
        code.count, &count)
    guard end != nil else {
        ERR_clear_error()
        throw SigningError(.cryptoFailed, "OpenSSL has no HMAC")
    }
    return Array(code.prefix(count))
}
