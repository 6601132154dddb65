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

    /// Seals `writes` in order and appends the records to `ciphertext`. Small writes are joined in
    /// the wire's scratch memory; full records of a large write are sealed in place.
    ///
    /// The caller has begun a use of the wire. Returns false when OpenSSL refuses.
    static func seal(
        _ writes: [TLSServerHandler.PendingWrite], _ ssl: OpaquePointer, _ wire: MemoryBIO,
        into ciphertext: inout ByteBuffer
    ) -> Bool {
        let record = MemoryBIO.recordContentBytesMax
        var joined = 0
        for (index, write) in writes.enumerated() {
            let isLast = index == writes.count - 1
            let sealed = write.bytes.withUnsafeReadableBytes { bytes in
                var rest = bytes
                while !rest.isEmpty {
                    if joined == 0, rest.count >= record || isLast {
                        let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(record))
                        guard seal(piece, ssl, wire, into: &ciphertext) else { return false }
                        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(record))
                        continue
                    }
                    let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(record - joined))
                    UnsafeMutableRawBufferPointer(rebasing: wire.scratch[joined...])
                        .copyMemory(from: piece)
                    joined += piece.count
                    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(piece.count))
                    guard joined == record else { continue }
                    joined = 0
                    let whole = UnsafeRawBufferPointer(wire.scratch)
                    guard seal(whole, ssl, wire, into: &ciphertext) else { return false }
                }
                return true
            }
            guard sealed else { return false }
        }
        guard joined > 0 else { return true }
        return seal(
            UnsafeRawBufferPointer(rebasing: wire.scratch[..<joined]), ssl, wire,
            into: &ciphertext)
    }

    private static func seal(
        _ plaintext: UnsafeRawBufferPointer, _ ssl: OpaquePointer, _ wire: MemoryBIO,
        into ciphertext: inout ByteBuffer
    ) -> Bool {
        let sealed = seal(plaintext, ssl)
        wire.moveOutput(to: &ciphertext)
        return sealed
    }

    /// Seals `plaintext`; the records are in the wire's output. Our BIO never blocks, so a write is
    /// accepted whole or fails for good. `SSL_get_error` is therefore never called and the thread's
    /// error queue need not be emptied for it, which would cost up to a tenth of the sealing.
    @inline(__always)
    static func seal(_ plaintext: UnsafeRawBufferPointer, _ ssl: OpaquePointer) -> Bool {
        var written = 0
        return SSL_write_ex(ssl, plaintext.baseAddress, plaintext.count, &written) == 1
            && written == plaintext.count
    }
}
