import COpenSSL
import Glibc

/// The key under which the fleet's secrets lie in the database: AES-256-GCM, with kind and name of
/// the row as associated data, so that rows cannot be exchanged.
package final class FleetKey: Sendable {
    /// The number of bytes of a key.
    package static let byteCount = 32

    private static let format: UInt8 = 1
    private static let nonceBytes = 12
    private static let tagBytes = 16

    private let key: SecretBytes

    /// Reads the key from a file with mode 0600 or 0400 and exactly 32 bytes.
    ///
    /// - Throws: `SecretError.keyFile` for any other file, saying what to change.
    package init(contentsOf path: String) throws(SecretError) {
        func fault(_ reason: String) -> SecretError { .keyFile(path: path, reason: reason) }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw fault("could not be opened: \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw fault("is not a regular file")
        }
        let mode = status.st_mode & 0o7777
        guard mode == 0o600 || mode == 0o400 else {
            throw fault(
                "has mode 0\(String(mode, radix: 8)); only its owner may read it: chmod 600")
        }
        guard status.st_size == Self.byteCount else {
            throw fault("has \(status.st_size) bytes; a key has \(Self.byteCount)")
        }
        let key = SecretBytes(count: Self.byteCount) {
            pread(descriptor, $0.baseAddress, $0.count, 0) == Self.byteCount
        }
        guard let key else { throw fault("could not be read") }
        self.key = key
    }

    /// Uses a key of 32 bytes.
    init(_ key: SecretBytes) {
        precondition(key.count == Self.byteCount, "a count our own code chooses")
        self.key = key
    }

    /// Wraps a secret for one row.
    ///
    /// - Throws: `SecretError.cryptoFailed`.
    package func wrap(
        _ secret: SecretBytes, kind: String, name: String
    ) throws(SecretError) -> [UInt8] {
        var wrapped = [UInt8](
            repeating: 0, count: 1 + Self.nonceBytes + secret.count + Self.tagBytes)
        wrapped[0] = Self.format
        let associated = Self.associatedData(kind: kind, name: name)
        let isDone = wrapped.withUnsafeMutableBytes { output in
            secret.withBytes { input in
                key.withBytes { Self.seal(input, under: $0, associated, into: output) }
            }
        }
        guard isDone else {
            ERR_clear_error()
            throw .cryptoFailed
        }
        return wrapped
    }

    /// Unwraps the secret of a row.
    ///
    /// - Throws: `SecretError.notAuthentic` when it was not wrapped under this key for this row.
    package func unwrap(
        _ wrapped: [UInt8], kind: String, name: String
    ) throws(SecretError) -> SecretBytes {
        let count = wrapped.count - 1 - Self.nonceBytes - Self.tagBytes
        guard count >= 0, wrapped[0] == Self.format else {
            throw .notAuthentic(kind: kind, name: name)
        }
        let associated = Self.associatedData(kind: kind, name: name)
        let secret = SecretBytes(count: count) { output in
            wrapped.withUnsafeBytes { input in
                key.withBytes { Self.unseal(input, under: $0, associated, into: output) }
            }
        }
        guard let secret else {
            ERR_clear_error()
            throw .notAuthentic(kind: kind, name: name)
        }
        return secret
    }

    /// The length before the kind keeps kind and name apart.
    private static func associatedData(kind: String, name: String) -> [UInt8] {
        let count = UInt32(clamping: kind.utf8.count)
        return (0..<4).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) } + kind.utf8 + name.utf8
    }

    /// The start of a part of a buffer, for OpenSSL.
    private static func start(
        _ buffer: UnsafeRawBufferPointer, at offset: Int = 0
    ) -> UnsafePointer<UInt8>? {
        buffer.baseAddress.map { $0.advanced(by: offset).assumingMemoryBound(to: UInt8.self) }
    }

    private static func seal(
        _ input: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer,
        _ associated: [UInt8], into output: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard let context = EVP_CIPHER_CTX_new(), let base = output.baseAddress else {
            return false
        }
        // Freeing overwrites the key schedule.
        defer { EVP_CIPHER_CTX_free(context) }
        // Sound: `output` has the format byte, the nonce, the input's length and the tag.
        let nonce = base.advanced(by: 1).assumingMemoryBound(to: UInt8.self)
        let sealed = nonce + nonceBytes
        var count: Int32 = 0
        return RAND_bytes(nonce, Int32(nonceBytes)) == 1
            && EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nil, start(key), nonce) == 1
            && EVP_EncryptUpdate(context, nil, &count, associated, Int32(associated.count)) == 1
            && EVP_EncryptUpdate(context, sealed, &count, start(input), Int32(input.count)) == 1
            && EVP_EncryptFinal_ex(context, sealed + input.count, &count) == 1
            && EVP_CIPHER_CTX_ctrl(
                context, EVP_CTRL_AEAD_GET_TAG, Int32(tagBytes), sealed + input.count) == 1
    }

    private static func unseal(
        _ input: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer,
        _ associated: [UInt8], into output: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard let context = EVP_CIPHER_CTX_new(), let opened = output.baseAddress else {
            return false
        }
        defer { EVP_CIPHER_CTX_free(context) }
        let plain = opened.assumingMemoryBound(to: UInt8.self)
        let sealedStart = 1 + nonceBytes
        // Sound: OpenSSL only reads the tag.
        let tag = UnsafeMutableRawPointer(mutating: start(input, at: sealedStart + output.count))
        var count: Int32 = 0
        return EVP_DecryptInit_ex(
            context, EVP_aes_256_gcm(), nil, start(key), start(input, at: 1)) == 1
            && EVP_DecryptUpdate(context, nil, &count, associated, Int32(associated.count)) == 1
            && EVP_DecryptUpdate(
                context, plain, &count, start(input, at: sealedStart), Int32(output.count)) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagBytes), tag) == 1
            && EVP_DecryptFinal_ex(context, plain + output.count, &count) == 1
    }
}
