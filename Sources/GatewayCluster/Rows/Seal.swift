import COpenSSL
import Glibc

/// Seals what a cluster keeps in its database: AES-256-GCM. The row's place is associated data, so
/// rows cannot be exchanged. A copy of the database alone reveals no payload and no key.
package struct Seal: Sendable {
    /// The reason why a key or a sealed value cannot be used.
    package enum Fault: Error, Equatable, Sendable, CustomStringConvertible {
        case keyFile(path: String, reason: String)
        /// The value was not sealed for this row with one of the keys.
        case notAuthentic(row: String)
        case cryptoFailed

        package var description: String {
            switch self {
            case .keyFile(let path, let reason): "the key file \(path) \(reason)"
            case .notAuthentic(let row):
                "\(row) was not sealed with one of this node's cluster keys: give every node the same"
                    + " keys"
            case .cryptoFailed: "OpenSSL failed"
            }
        }
    }

    package static let keyBytes = 32
    private static let keysMax = 8
    private static let format: UInt8 = 1
    private static let nameBytes = 4
    private static let nonceBytes = 12
    private static let tagBytes = 16
    private static let headerBytes = 1 + nameBytes + nonceBytes

    private struct Key: Sendable {
        let bytes: [UInt8]
        /// The beginning of the key's hash, which identifies the key in sealed values.
        let name: [UInt8]
    }

    /// The current key first.
    private let keys: [Key]

    /// Reads the keys from a file that only its owner can read: 32 bytes for each, the current key
    /// first, then older ones.
    ///
    /// - Throws: ``Fault/keyFile(path:reason:)``, saying what to change.
    package init(contentsOf path: String) throws(Fault) {
        func fault(_ reason: String) -> Fault { .keyFile(path: path, reason: reason) }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw fault("could not be opened: \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw fault("is not a regular file")
        }
        // systemd's access list for a service shows as rights of the group.
        let isCredential = path.hasPrefix("/run/credentials/")
        guard status.st_mode & (isCredential ? 0o007 : 0o077) == 0 else {
            throw fault("can be read by others than its owner: chmod 600")
        }
        let count = Int(status.st_size)
        guard count > 0, count % Self.keyBytes == 0, count <= Self.keysMax * Self.keyBytes else {
            throw fault(
                "has \(count) bytes; it must have \(Self.keyBytes) for each of 1 to \(Self.keysMax)"
                    + " keys")
        }
        var bytes = [UInt8](repeating: 0, count: count)
        guard pread(descriptor, &bytes, count, 0) == count else { throw fault("cannot be read") }
        try self.init(bytes)
    }

    /// Uses keys that stand one behind the other, the current one first.
    package init(_ bytes: [UInt8]) throws(Fault) {
        var keys: [Key] = []
        for start in stride(from: 0, to: bytes.count, by: Self.keyBytes) {
            let key = Array(bytes[start..<min(start + Self.keyBytes, bytes.count)])
            var hash = [UInt8](repeating: 0, count: 32)
            guard
                EVP_Digest(key, key.count, &hash, nil, EVP_sha256(), nil) == 1
            else { throw .cryptoFailed }
            keys.append(Key(bytes: key, name: Array(hash.prefix(Self.nameBytes))))
        }
        self.keys = keys
    }

    /// The name of the current key; a sealed value has its key's name behind its first byte.
    var currentKey: [UInt8] { keys[0].name }

    /// Seals bytes for one row with the current key.
    ///
    /// - Throws: ``Fault/cryptoFailed``.
    func seal(_ bytes: [UInt8], for row: String) throws(Fault) -> [UInt8] {
        let key = keys[0]
        var sealed = [Self.format] + key.name
        sealed += [UInt8](
            repeating: 0, count: Self.nonceBytes + bytes.count + Self.tagBytes)
        let place = Array(row.utf8)
        let isDone = sealed.withUnsafeMutableBufferPointer { output -> Bool in
            guard let start = output.baseAddress, let context = EVP_CIPHER_CTX_new() else {
                return false
            }
            // Freeing overwrites the key schedule.
            defer { EVP_CIPHER_CTX_free(context) }
            // Sound: `output` has the header, the bytes' length and the tag.
            let nonce = start + 1 + Self.nameBytes
            let body = start + Self.headerBytes
            var count: Int32 = 0
            return RAND_bytes(nonce, Int32(Self.nonceBytes)) == 1
                && EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nil, key.bytes, nonce) == 1
                && EVP_EncryptUpdate(context, nil, &count, place, Int32(place.count)) == 1
                && EVP_EncryptUpdate(context, body, &count, bytes, Int32(bytes.count)) == 1
                && EVP_EncryptFinal_ex(context, body + bytes.count, &count) == 1
                && EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagBytes), body + bytes.count) == 1
        }
        guard isDone else {
            // An error left in the queue would be taken for one of a handshake.
            ERR_clear_error()
            throw .cryptoFailed
        }
        return sealed
    }

    /// Returns the bytes that were sealed for a row with any of the keys.
    ///
    /// - Throws: ``Fault/notAuthentic(row:)``.
    func open(_ sealed: [UInt8], for row: String) throws(Fault) -> [UInt8] {
        let count = sealed.count - Self.headerBytes - Self.tagBytes
        guard count >= 0, sealed[0] == Self.format,
            let key = keys.first(where: { $0.name.elementsEqual(sealed[1...Self.nameBytes]) })
        else { throw .notAuthentic(row: row) }
        let place = Array(row.utf8)
        // One byte more: an empty buffer may have no address.
        var opened = [UInt8](repeating: 0, count: count + 1)
        let isDone = sealed.withUnsafeBufferPointer { input -> Bool in
            guard let start = input.baseAddress, let context = EVP_CIPHER_CTX_new() else {
                return false
            }
            defer { EVP_CIPHER_CTX_free(context) }
            let body = start + Self.headerBytes
            // Sound: OpenSSL only reads the tag.
            let tag = UnsafeMutableRawPointer(mutating: body + count)
            var written: Int32 = 0
            // GCM leaves nothing for the end.
            var rest: [UInt8] = [0]
            return EVP_DecryptInit_ex(
                context, EVP_aes_256_gcm(), nil, key.bytes, start + 1 + Self.nameBytes) == 1
                && EVP_DecryptUpdate(context, nil, &written, place, Int32(place.count)) == 1
                && EVP_DecryptUpdate(context, &opened, &written, body, Int32(count)) == 1
                && EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagBytes), tag) == 1
                && EVP_DecryptFinal_ex(context, &rest, &written) == 1
        }
        guard isDone else {
            ERR_clear_error()
            throw .notAuthentic(row: row)
        }
        opened.removeLast()
        return opened
    }
}
