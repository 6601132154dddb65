import COpenSSL

/// A SHA-256 digest, usable as a dictionary key.
package struct SHA256Digest: Sendable, Hashable {
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// Fetched once: each lookup by name takes longer than hashing a token.
    private static let algorithm = FetchedDigest()

    /// Computes the digest of `bytes`. Throws ``SigningError`` (`cryptoFailed`) when OpenSSL is out
    /// of memory or has no SHA-256.
    package init(of bytes: [UInt8]) throws(SigningError) {
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        let isDone = withUnsafeMutableBytes(of: &words) { output in
            EVP_Digest(
                bytes, bytes.count, output.baseAddress?.assumingMemoryBound(to: UInt8.self), nil,
                Self.algorithm.pointer, nil) == 1
        }
        guard isDone else {
            ERR_clear_error()
            throw SigningError(.cryptoFailed, "SHA-256 is not available")
        }
        self.words = words
    }

    /// Computes the digest of bytes that arrive in pieces. Throws as ``init(of:)``.
    ///
    /// - Parameter next: Returns the next piece, never empty; `nil` at the end. Its errors are
    ///   rethrown.
    package init(pieces next: () throws -> [UInt8]?) throws {
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        var isDone = EVP_DigestInit_ex(context, Self.algorithm.pointer, nil) == 1
        while isDone, let piece = try next() {
            isDone = EVP_DigestUpdate(context, piece, piece.count) == 1
        }
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        isDone =
            isDone
            && withUnsafeMutableBytes(of: &words) { output in
                EVP_DigestFinal_ex(
                    context, output.baseAddress?.assumingMemoryBound(to: UInt8.self), nil) == 1
            }
        guard isDone else {
            ERR_clear_error()
            throw SigningError(.cryptoFailed, "SHA-256 is not available")
        }
        self.words = words
    }

    /// The digest in lower-case hexadecimal.
    package var hexadecimal: String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// The 32 bytes of the digest.
    package var bytes: [UInt8] {
        withUnsafeBytes(of: words) { Array($0) }
    }

    /// Returns whether both digests are equal.
    package static func == (one: Self, other: Self) -> Bool {
        one.words == other.words
    }

    /// Hashes the whole digest, although a part would suffice.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
    }
}

/// The SHA-256 algorithm as fetched from OpenSSL.
private final class FetchedDigest: @unchecked Sendable {
    // Sound: a fetched EVP_MD is constant, its reference count atomic, and this one is never freed.
    let pointer = EVP_MD_fetch(nil, "SHA256", nil)
}
