import COpenSSL

/// Secret bytes in memory, overwritten when they are no longer used.
package final class SecretBytes: @unchecked Sendable {
    // Sound: written in `init` only, and freed once, in `deinit`.
    private let bytes: UnsafeMutableRawBufferPointer

    /// Creates a secret by filling `count` bytes.
    ///
    /// - Returns: `nil` when `fill` returns false.
    package init?(count: Int, fill: (UnsafeMutableRawBufferPointer) -> Bool) {
        bytes = .allocate(byteCount: max(1, count), alignment: 16)
        bytes.initializeMemory(as: UInt8.self, repeating: 0)
        self.count = count
        guard fill(UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])) else { return nil }
    }

    /// Creates a secret with the same bytes as an array, which the caller overwrites.
    package init(copying source: [UInt8]) {
        bytes = .allocate(byteCount: max(1, source.count), alignment: 16)
        bytes.copyBytes(from: source)
        count = source.count
    }

    /// Creates a secret of random bytes.
    ///
    /// - Returns: `nil` when the generator has no entropy.
    package convenience init?(randomCount count: Int) {
        self.init(count: count) {
            let isFilled = RAND_priv_bytes($0.baseAddress, Int32(clamping: $0.count)) == 1
            // An error left in the queue would be taken for one of a handshake.
            if !isFilled { ERR_clear_error() }
            return isFilled
        }
    }

    deinit {
        OPENSSL_cleanse(bytes.baseAddress, bytes.count)
        bytes.deallocate()
    }

    /// The number of bytes.
    package let count: Int

    /// Lends the bytes to `body`, which must not keep them.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        body(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
    }
}
