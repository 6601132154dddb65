import COpenSSL

/// A cipher suite of TLS 1.3 (RFC 8446 appendix B.4): a cipher for records and a hash for keys.
enum RecordSuite: UInt8, CaseIterable, Sendable {
    case aes128GCM
    case aes256GCM
    case chaCha20Poly1305

    /// The authentication tag that every suite of TLS 1.3 adds to a record besides its header.
    static let tagBytes = 16

    /// The suite of a connection; `nil` before the handshake, for TLS 1.2, and for suites that we
    /// do not offer.
    init?(of ssl: OpaquePointer) {
        guard SSL_version(ssl) == TLS1_3_VERSION, let cipher = SSL_get_current_cipher(ssl) else {
            return nil
        }
        switch SSL_CIPHER_get_protocol_id(cipher) {
        case 0x1301: self = .aes128GCM
        case 0x1302: self = .aes256GCM
        case 0x1303: self = .chaCha20Poly1305
        default: return nil
        }
    }

    /// A hash for HKDF.
    enum Hash: Int, CaseIterable, Sendable {
        case sha256
        case sha384

        /// The length of a digest, in bytes.
        var bytes: Int { self == .sha256 ? 32 : 48 }

        /// OpenSSL's name for the hash.
        var name: StaticString { self == .sha256 ? "SHA256" : "SHA384" }
    }

    /// The hash that HKDF uses with this suite.
    var hash: Hash { self == .aes256GCM ? .sha384 : .sha256 }

    /// The length of a traffic secret, in bytes: that of a digest.
    var secretBytes: Int { hash.bytes }

    /// The length of a record key, in bytes.
    var keyBytes: Int { self == .aes128GCM ? 16 : 32 }

    /// OpenSSL's implementation of the cipher; static, never freed.
    var cipher: OpaquePointer? {
        switch self {
        case .aes128GCM: EVP_aes_128_gcm()
        case .aes256GCM: EVP_aes_256_gcm()
        case .chaCha20Poly1305: EVP_chacha20_poly1305()
        }
    }
}

/// The reason why a connection ends, with the number of its alert (RFC 8446 section 6).
enum Alert: UInt8, Sendable {
    case closeNotify = 0
    case unexpectedMessage = 10
    case badRecordMAC = 20
    case recordOverflow = 22
    case illegalParameter = 47
    case decodeError = 50
    case internalError = 80
}

/// The content type of a record (RFC 8446 section 5.1).
enum RecordContent: UInt8, Sendable {
    case alert = 21
    case handshake = 22
    case applicationData = 23
}
