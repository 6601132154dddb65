import COpenSSL
import Foundation

extension DevelopmentCertificates {
    static func pem(_ certificate: PEMCertificate) throws(TLSError) -> [UInt8] {
        try pem { PEM_write_bio_X509($0, certificate.pointer) }
    }

    /// A private key as PEM text (PKCS #8), not encrypted: a server starts with no one to enter a
    /// passphrase.
    static func pem(_ key: PEMPrivateKey) throws(TLSError) -> [UInt8] {
        try pem { PEM_write_bio_PKCS8PrivateKey($0, key.pointer, nil, nil, 0, nil, nil) }
    }

    private static func pem(_ write: (OpaquePointer) -> Int32) throws(TLSError) -> [UInt8] {
        // Secure memory is wiped when it is freed.
        guard let bio = BIO_new(BIO_s_secmem()) else { throw engine() }
        defer { BIO_free(bio) }
        guard write(bio) == 1, let count = Int32(exactly: BIO_ctrl_pending(bio)) else {
            throw engine()
        }
        var text = [UInt8](repeating: 0, count: Int(count))
        guard BIO_read(bio, &text, count) == count else { throw engine() }
        return text
    }
}

/// Directories of mode 0700, and files that appear whole and durable or not at all.
enum PrivateDirectory {
    /// Whether anything exists at `path`, readable or not.
    static func exists(_ path: String) -> Bool {
        access(path, F_OK) == 0
    }

    /// Makes a directory of mode 0700 unless it exists; an existing one keeps its mode.
    static func make(_ path: String) throws(TLSError) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw failure("make", path) }
    }

    /// Creates `path` with `content`; if anything exists there, replaces it or fails.
    static func put(
        _ path: String, with content: [UInt8], mode: mode_t, replacing: Bool = false
    ) throws(TLSError) {
        let temporary = try temporary(beside: path, content, mode: mode)
        // Unlike a rename, a link never replaces.
        let isThere = (replacing ? rename(temporary, path) : link(temporary, path)) == 0
        let error = failure(replacing ? "replace" : "make", path)
        // After a rename, a file of that name would be another process's.
        if !(replacing && isThere) { unlink(temporary) }
        guard isThere else { throw error }
        try sync(directoryOf: path)
    }

    /// Writes a file beside `path` and makes it durable. Its name is fixed, so that the next call
    /// overwrites what a crash left behind and such files do not pile up.
    private static func temporary(
        beside path: String, _ content: [UInt8], mode: mode_t
    ) throws(TLSError) -> String {
        let temporary = path + ".tmp"
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("make", temporary) }
        var written = 0
        while written < content.count {
            let count = content.withUnsafeBytes {
                write(descriptor, $0.baseAddress.map { $0 + written }, $0.count - written)
            }
            if count > 0 { written += count } else if count == 0 || errno != EINTR { break }
        }
        // The mode is set separately, because the umask applies to the mode given to `open`.
        let isDurable =
            written == content.count && fchmod(descriptor, mode) == 0 && fsync(descriptor) == 0
        let error = failure("write", temporary)
        close(descriptor)
        guard isDurable else {
            unlink(temporary)
            throw error
        }
        return temporary
    }

    /// Makes a file's name durable by syncing its directory.
    private static func sync(directoryOf path: String) throws(TLSError) {
        let directory = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("open", directory) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure("sync", directory) }
    }

    private static func failure(_ verb: String, _ path: String) -> TLSError {
        TLSError(.unwritable, "cannot \(verb) \(path): \(String(cString: strerror(errno)))")
    }
}
