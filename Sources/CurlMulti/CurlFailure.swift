import CCurl

/// Why libcurl could not carry out a request, as far as it tells a caller what to do.
package enum CurlFailure: Sendable, Hashable {
    /// The name could not be resolved.
    case unresolved
    /// Nothing listens there.
    case unreachable
    /// A deadline passed.
    case timedOut
    /// One of the two sides does not trust the other's certificate, or they share no TLS.
    case notTrusted
    /// A callback would not go on.
    case refusedByCallback
    /// The stream was reset.
    case streamReset
    /// The request could never be made.
    case badRequest
    /// Anything else: the connection ended, or spoke no HTTP.
    case broken

    /// The failure of a code that is not `CURLE_OK`.
    package init(_ code: CURLcode) {
        self =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .unresolved
            case CURLE_COULDNT_CONNECT: .unreachable
            case CURLE_OPERATION_TIMEDOUT: .timedOut
            case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION,
                CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CERTPROBLEM,
                CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED:
                .notTrusted
            case CURLE_WRITE_ERROR, CURLE_ABORTED_BY_CALLBACK: .refusedByCallback
            case CURLE_HTTP2_STREAM: .streamReset
            case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: .badRequest
            default: .broken
            }
    }
}
