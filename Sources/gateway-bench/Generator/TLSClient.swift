import COpenSSL

/// The TLS context of all connections of one generator, and one pair of memory buffers through which
/// each in turn is fed and emptied, so that no connection holds any of its own.
final class TLSClient {
    /// The context: TLS 1.3, AES-128-GCM, the server's certificate verified.
    private let context: OpaquePointer
    /// The bytes from the peer of the connection that is being served; empty between two.
    let incoming: OpaquePointer
    /// The bytes to that peer; empty between two.
    let outgoing: OpaquePointer

    /// - Parameter ca: A file with the certificates to trust.
    init(ca: String) throws {
        guard let context = SSL_CTX_new(TLS_client_method()) else {
            throw BenchFailure("no TLS context")
        }
        guard let incoming = BIO_new(BIO_s_mem()), let outgoing = BIO_new(BIO_s_mem()) else {
            SSL_CTX_free(context)
            throw BenchFailure("no TLS buffers")
        }
        (self.context, self.incoming, self.outgoing) = (context, incoming, outgoing)
        guard gateway_SSL_CTX_set_version_range(context, TLS1_3_VERSION, TLS1_3_VERSION) == 1,
            SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1
        else { throw BenchFailure("OpenSSL rejects TLS 1.3 with AES-128-GCM") }
        guard SSL_CTX_load_verify_locations(context, ca, nil) == 1 else {
            throw BenchFailure("\(ca) contains no certificates")
        }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        _ = gateway_SSL_CTX_set_mode(context, Int(SSL_MODE_RELEASE_BUFFERS))
        _ = gateway_SSL_CTX_set_session_cache_mode(context, Int(SSL_SESS_CACHE_OFF))
    }

    deinit {
        BIO_free(incoming)
        BIO_free(outgoing)
        SSL_CTX_free(context)
    }

    /// A session that expects a server called `localhost`; the caller frees it.
    func session() throws -> OpaquePointer {
        guard let session = SSL_new(context) else { throw BenchFailure("no TLS session") }
        // Each session owns one reference to both buffers.
        BIO_up_ref(incoming)
        BIO_up_ref(outgoing)
        SSL_set_bio(session, incoming, outgoing)
        SSL_set_connect_state(session)
        let name = "localhost"
        // A macro in C: SSL_set_tlsext_host_name.
        let isNamed = name.withCString { text in
            // Sound: OpenSSL copies the name and does not write to it.
            SSL_ctrl(
                session, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name),
                UnsafeMutableRawPointer(mutating: text))
        }
        guard isNamed == 1, SSL_set1_host(session, name) == 1 else {
            SSL_free(session)
            throw BenchFailure("OpenSSL rejects the server's name")
        }
        return session
    }

    /// Drops the bytes that a connection left unread.
    func clearIncoming() {
        if BIO_ctrl_pending(incoming) > 0 { BIO_ctrl(incoming, BIO_CTRL_RESET, 0, nil) }
    }

    /// Removes and returns all bytes to be sent.
    func outgoingBytes() -> [UInt8] {
        let count = BIO_ctrl_pending(outgoing)
        guard count > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            // Sound: the buffer has room for `count`, and no more is asked for.
            filled = max(0, Int(BIO_read(outgoing, buffer.baseAddress, Int32(clamping: count))))
        }
    }

    /// The reason of OpenSSL's last refusal.
    static func reason() -> String {
        let code = ERR_peek_last_error()
        ERR_clear_error()
        guard code != 0, let text = ERR_reason_error_string(code) else { return "no reason given" }
        return String(cString: text)
    }
}
