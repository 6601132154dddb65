import COpenSSL
import NIOCore

/// Turns plaintext into as few records as possible.
enum RecordSealing {
    /// The most that one record adds with our suites: header, explicit nonce or content type, and
    /// tag.
    static let recordOverheadBytesMax = 32

    /// The room needed for `bytes` of plaintext joined into records.
    static func ciphertextCapacity(for bytes: Int) -> Int {
        bytes + (bytes / MemoryBIO.recordContentBytesMax + 1) * recordOverheadBytesMax
    }

    /// Seals `writes`, joined in order, and appends the records to `ciphertext`. A single write is
    /// not copied.
    ///
    /// The caller has begun a use of the wire. Returns false when OpenSSL refuses.
    static func seal(
        _ writes: [TLSServerHandler.PendingWrite], _ ssl: OpaquePointer, _ wire: MemoryBIO,
        into ciphertext: inout ByteBuffer
    ) -> Bool {
        guard var rest = writes.first?.bytes else { return true }
        if writes.count > 1 {
            rest.reserveCapacity(writes.reduce(0) { $0 + $1.bytes.readableBytes })
            for write in writes.dropFirst() { rest.writeImmutableBuffer(write.bytes) }
        }
        while rest.readableBytes > 0 {
            let length = min(rest.readableBytes, MemoryBIO.recordContentBytesMax)
            let isSealed = rest.readWithUnsafeReadableBytes { bytes -> (Int, Bool) in
                let record = UnsafeRawBufferPointer(rebasing: bytes[..<length])
                return (length, seal(record, ssl))
            }
            wire.moveOutput(to: &ciphertext)
            guard isSealed else { return false }
        }
        return true
    }

    /// Seals `plaintext` into the wire's output. Our BIO never blocks, so a write is accepted whole
    /// or fails for good: `SSL_get_error` is never called, and the thread's error queue need not be
    /// emptied for it, which would cost up to a tenth of the sealing.
    @inline(__always)
    static func seal(_ plaintext: UnsafeRawBufferPointer, _ ssl: OpaquePointer) -> Bool {
        var written = 0
        return SSL_write_ex(ssl, plaintext.baseAddress, plaintext.count, &written) == 1
            && written == plaintext.count
    }
}
