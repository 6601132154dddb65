import COpenSSL

/// A TLS error: a code to branch on, and a sentence for the operator.
///
/// The message names files, never key material or anything a peer sent.
package struct TLSError: Error, Equatable, CustomStringConvertible {
    /// The kinds of failure.
    package enum Code: Equatable, Sendable {
        /// A certificate, key or CA file cannot be read; the message names it.
        case fileUnreadable
        /// A file or text holds no usable PEM of the kind expected; the message names it.
        case notPEM
        /// The private key does not belong to the leaf certificate.
        case keyMismatch
        /// A cipher list, group list or ALPN list is empty or unknown to OpenSSL.
        case invalidSettings
        /// OpenSSL or the kernel has no memory or descriptors, or refuses a call that cannot fail
        /// otherwise.
        case engine
        /// The handshake ended without a connection.
        case handshakeFailed(HandshakeFailure)
        /// A record did not decrypt, or the peer broke the protocol after the handshake.
        case protocolViolation(PeerViolation)
        /// The peer ended the connection with a fatal alert (RFC 8446 section 6.2).
        case truncated
        /// Something other than bytes was written.
        case unsupportedWrite
        /// A directory or file of development certificates cannot be made, written or made durable.
        case unwritable
        /// A file of development certificates does not match the other files, or is not what its
        /// name says.
        case unusable
        /// The validity of the development CA has ended or has not begun.
        case expired
        /// A development certificate has to be made, but the key of its CA is not there.
        case noSigningKey
    }

    /// The kind of failure, to branch on.
    package let code: Code
    /// One sentence for a log.
    package let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}

/// The reason why a handshake failed, in words short enough for a metric label.
package enum HandshakeFailure: String, CaseIterable, Sendable {
    /// The peer speaks HTTP without TLS.
    case plainHTTP = "plain-http"
    /// The peer offers no protocol version in our range.
    case version
    /// The peer offers application protocols, but none of ours.
    case alpn
    /// The handshake was not done at its deadline.
    case timeout
    /// The client's certificate is missing or not trusted, or the client refused ours.
    case certificate
    /// Everything else: the peer left, or sent something that is not TLS.
    case other
}

/// The reason why the gateway ended a peer's connection after the handshake, or one of its requests,
/// in words short enough for a metric label.
package enum PeerViolation: String, CaseIterable, Sendable {
    /// The peer sent too many records without content, such as key updates.
    case emptyRecords = "empty_records"
    /// The peer sent what OpenSSL refuses, such as a record that does not decrypt.
    case malformed
    /// The peer sent messages that demand answers, and did not read the answers.
    case unreadAnswers = "unread_answers"
    /// The body of a request came too slowly.
    case body
    /// A response was not read.
    case unread
    /// The peer sent too many frames of HTTP/2 that only cost work, such as RST_STREAM or PING.
    case http2Flood = "h2_flood"
    /// The peer broke HTTP/2.
    case http2Protocol = "h2_protocol"
}

/// Reads the error queue of the calling thread.
enum OpenSSLErrors {
    /// Returns the reason of the oldest error, as OpenSSL words it, and empties the queue.
    static func takeReason() -> String {
        let code = ERR_peek_error()
        defer { ERR_clear_error() }
        guard code != 0, let text = ERR_reason_error_string(code) else { return "unknown reason" }
        return String(cString: text)
    }

    /// Returns why a handshake failed, for an operator: the oldest error as OpenSSL words it, and its
    /// meaning where that is not obvious. Empties the queue.
    static func takeHandshakeReason() -> String {
        let meaning: String? =
            switch ERR_GET_REASON(ERR_peek_error()) {
            case SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST: "the peer speaks HTTP without TLS"
            case SSL_R_WRONG_VERSION_NUMBER: "the peer does not speak TLS"
            case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
                "the peer does not trust the issuer of the gateway's certificate"
            case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,
                SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
                "the peer rejects the gateway's certificate"
            case SSL_R_CERTIFICATE_VERIFY_FAILED: "the peer's certificate is not trusted"
            case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: "the peer has no certificate"
            default: nil
            }
        let reason = takeReason()
        return meaning.map { "\($0) (\(reason))" } ?? reason
    }

    /// Classifies the oldest error of a failed handshake; leaves the queue as it is.
    static func handshakeFailure() -> HandshakeFailure {
        switch ERR_GET_REASON(ERR_peek_error()) {
        case SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST:
            .plainHTTP
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_VERSION_TOO_LOW, SSL_R_WRONG_SSL_VERSION,
            SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, SSL_R_NO_PROTOCOLS_AVAILABLE:
            .version
        case SSL_R_NO_APPLICATION_PROTOCOL:
            .alpn
        case SSL_R_CERTIFICATE_VERIFY_FAILED, SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE,
            SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE,
            SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
            SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, SSL_R_TLSV1_ALERT_UNKNOWN_CA,
            SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
            .certificate
        default:
            .other
        }
    }
}
