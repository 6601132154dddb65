import CCurl

/// The reason why a request has no response, or only a part of it.
package struct CurlError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure; stable, for programs.
    package enum Code: String, Sendable, CaseIterable {
        /// The client is closed, or being drained.
        case closed
        /// Too many callers wait for room; retry later.
        case busy
        /// The request is invalid and can never be sent.
        case badRequest = "bad-request"
        /// libcurl has no memory.
        case noMemory = "no-memory"
        /// The caller cancelled the request.
        case cancelled

        /// The name could not be resolved.
        case unresolved
        /// Connecting to the address is not allowed.
        case addressNotAllowed = "address-not-allowed"
        /// Nothing listens at the address.
        case unreachable
        /// One side does not trust the other's certificate, or they have no TLS version or cipher
        /// in common.
        case notTrusted = "not-trusted"
        /// The timeout passed before the request could be sent.
        case notSent = "not-sent"

        /// The stream was refused, or its id is greater than the last one in a GOAWAY: the peer has
        /// certainly not acted on it.
        case notProcessed = "not-processed"
        /// The connection ended before the response.
        case connectionEnded = "connection-ended"
        /// The stream was reset before the response.
        case streamReset = "stream-reset"
        /// The request was sent, and the timeout passed before the response.
        case timedOut = "timed-out"
        /// No part of the response arrived for too long.
        case silent
        /// The receiver accepts no more of the body.
        case tooLarge = "too-large"
    }

    /// The kind of failure.
    package let code: Code
    /// One sentence for a person, without secrets.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// "timed-out: Operation timed out after 30001 milliseconds".
    package var description: String { "\(code.rawValue): \(message)" }

    static let isCancelled = CurlError(.cancelled, "the request was cancelled")
    static let isClosed = CurlError(.closed, "the client is closed")
    static let isNotSent = CurlError(
        .notSent, "the deadline passed before a connection took the request")
    static let isRefused = CurlError(.notProcessed, "the stream was refused")
    static let isSilent = CurlError(.silent, "the stream carried nothing for too long")
}

extension CurlError.Code {
    /// The kind of a failure that libcurl reports.
    ///
    /// - Parameters:
    ///   - code: A code other than `CURLE_OK`.
    ///   - isSent: Whether the request had been handed to a connection.
    init(_ code: CURLcode, isSent: Bool) {
        self =
            switch code {
            case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: .badRequest
            case CURLE_OPERATION_TIMEDOUT: isSent ? .timedOut : .notSent
            case CURLE_HTTP2_STREAM: .streamReset
            case _ where isSent: .connectionEnded
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .unresolved
            case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION,
                CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CERTPROBLEM,
                CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED:
                .notTrusted
            default: .unreachable
            }
    }
}
