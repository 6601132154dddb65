import COpenSSL
import Foundation

/// A source of PEM text (RFC 7468).
package enum PEMSource: Sendable {
    /// A file, read when the context is built.
    case file(String)
    case text(String)

    /// The largest file that is read; a chain of ten certificates has about 20 KiB.
    package static let fileBytesMax = 1024 * 1024
    /// The most certificates in one source; a source with more is refused.
    package static let certificatesMax = 1024

    /// The source's name in error messages.
    var name: String {
        switch self {
        case .file(let path): path
        case .text: "the text given"
        }
    }

    /// Reads the source once, and returns its text if all its certificates are valid PEM. Throws
    /// ``TLSError``: `fileUnreadable`, `notPEM` or `engine`.
    package func certificateText() throws(TLSError) -> [UInt8] {
        let bytes = try bytes()
        _ = try certificates(in: bytes)
        return bytes
    }

    /// All certificates, in order; at least one.
    func certificates() throws(TLSError) -> [PEMCertificate] {
        var bytes = try bytes()
        // The file may contain the key as well.
        defer { Self.wipe(&bytes) }
        return try certificates(in: bytes)
    }

    private func certificates(in bytes: [UInt8]) throws(TLSError) -> [PEMCertificate] {
        try all("certificate", in: bytes) { bio in
            PEM_read_bio_X509(bio, nil, refusePassphrase, nil).map {
                PEMCertificate(pointer: $0)
            }
        }
    }

    /// All certificate revocation lists, in order; at least one.
    func revocationLists() throws(TLSError) -> [PEMRevocationList] {
        try all("revocation list", in: try bytes()) { bio in
            PEM_read_bio_X509_CRL(bio, nil, refusePassphrase, nil).map {
                PEMRevocationList(pointer: $0)
            }
        }
    }

    /// Reads all objects of a kind, in order; at least one.
    private func all<Object>(
        _ kind: String, in bytes: [UInt8], read: (OpaquePointer) -> Object?
    ) throws(TLSError) -> [Object] {
        try withBIO(bytes) { bio throws(TLSError) in
            var found: [Object] = []
            while let object = read(bio) {
                found.append(object)
                guard found.count <= Self.certificatesMax else {
                    throw TLSError(
                        .notPEM, "\(name) contains more than \(Self.certificatesMax) \(kind)s")
                }
            }
            // Reading always ends with an error; the end of the text is the expected one.
            let atEnd = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE
            let reason = OpenSSLErrors.takeReason()
            guard atEnd else { throw TLSError(.notPEM, "\(name): bad \(kind): \(reason)") }
            guard !found.isEmpty else {
                throw TLSError(.notPEM, "\(name) contains no PEM \(kind)")
            }
            return found
        }
    }

    /// The first private key.
    func privateKey() throws(TLSError) -> PEMPrivateKey {
        var bytes = try bytes()
        defer { Self.wipe(&bytes) }
        return try withBIO(bytes) { bio throws(TLSError) in
            guard let key = PEM_read_bio_PrivateKey(bio, nil, refusePassphrase, nil) else {
                let reason = OpenSSLErrors.takeReason()
                throw TLSError(
                    .notPEM, "\(name) contains no PEM private key without passphrase (\(reason))")
            }
            return PEMPrivateKey(pointer: key)
        }
    }

    private func withBIO<Result>(
        _ bytes: [UInt8], _ body: (OpaquePointer) throws(TLSError) -> Result
    ) throws(TLSError) -> Result {
        ERR_clear_error()
        guard let length = Int32(exactly: bytes.count), length > 0 else {
            throw TLSError(.notPEM, "\(name) is empty")
        }
        // The body cannot run inside a closure that lends the array's memory, because a typed throw
        // does not pass through one. OpenSSL gets a copy, which it wipes when the BIO is freed.
        guard let bio = BIO_new(BIO_s_secmem()) else {
            throw TLSError(.engine, "no memory to read \(name)")
        }
        defer { BIO_free(bio) }
        guard BIO_write(bio, bytes, length) == length else {
            throw TLSError(.engine, "no memory to read \(name)")
        }
        return try body(bio)
    }

    private func bytes() throws(TLSError) -> [UInt8] {
        switch self {
        case .text(let text):
            return Array(text.utf8)
        case .file(let path):
            guard let file = fopen(path, "re") else {
                let reason = String(cString: strerror(errno))
                throw TLSError(.fileUnreadable, "cannot open \(path): \(reason)")
            }
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: Self.fileBytesMax + 1)
            let count = fread(&bytes, 1, bytes.count, file)
            guard ferror(file) == 0 else {
                Self.wipe(&bytes)
                throw TLSError(.fileUnreadable, "cannot read \(path)")
            }
            guard count <= Self.fileBytesMax else {
                Self.wipe(&bytes)
                throw TLSError(
                    .fileUnreadable, "\(path) is larger than \(Self.fileBytesMax) bytes")
            }
            // Shortened in place: a copy would leave the key behind when the original array is
            // freed.
            bytes.removeSubrange(count...)
            return bytes
        }
    }

    /// Overwrites what may be a key, so that it does not stay behind in freed memory.
    private static func wipe(_ bytes: inout [UInt8]) {
        bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
    }
}

/// Refuses OpenSSL's request for a passphrase: a server has no terminal to ask on.
private func refusePassphrase(
    _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?
) -> Int32 {
    -1
}

/// A parsed certificate, freed with its last reference.
final class PEMCertificate {
    let pointer: OpaquePointer

    init(pointer: OpaquePointer) { self.pointer = pointer }
    deinit { X509_free(pointer) }

    /// The end of the certificate's validity.
    func notAfter() throws(TLSError) -> Date {
        var days: Int32 = 0
        var seconds: Int32 = 0
        let start = ASN1_TIME_set(nil, 0)
        defer { ASN1_TIME_free(start) }
        // Given no start, OpenSSL would count from now.
        guard start != nil,
            ASN1_TIME_diff(&days, &seconds, start, X509_get0_notAfter(pointer)) == 1
        else {
            ERR_clear_error()
            throw TLSError(.notPEM, "the certificate has no valid end date")
        }
        return Date(timeIntervalSince1970: Double(days) * 86_400 + Double(seconds))
    }
}

/// A parsed list of revoked certificates, freed with its last reference.
final class PEMRevocationList {
    let pointer: OpaquePointer

    init(pointer: OpaquePointer) { self.pointer = pointer }
    deinit { X509_CRL_free(pointer) }
}

/// A parsed private key, freed with its last reference.
final class PEMPrivateKey {
    let pointer: OpaquePointer

    init(pointer: OpaquePointer) { self.pointer = pointer }
    deinit { EVP_PKEY_free(pointer) }
}
