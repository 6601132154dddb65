import COpenSSL

/// Returns `count` bytes from OpenSSL's generator for secrets (RAND_bytes). Throws ``SigningError``
/// (`cryptoFailed`) without entropy; there is no weaker fallback.
package func secureRandom(count: Int) throws(SigningError) -> [UInt8] {
    precondition(count >= 0 && count <= Int(Int32.max), "a count our own code chooses")
    var bytes = [UInt8](repeating: 0, count: count)
    guard count == 0 || RAND_bytes(&bytes, Int32(count)) == 1 else {
        ERR_clear_error()
        throw SigningError(.cryptoFailed, "the system returned no random bytes")
    }
    return bytes
}
