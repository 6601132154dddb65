import COpenSSL

/// Records that no client needs, for what they cost the peer.
extension Generator {
    func sendTinyRecords(_ count: Int, on connection: ClientConnection) {
        guard connection.state == .open, let session = connection.session else { return }
        ERR_clear_error()
        for _ in 0..<count where SSL_write(session, [UInt8(ascii: "x")], 1) != 1 {
            return fail(connection, "TLS: \(TLSClient.reason())")
        }
        flush(connection)
    }

    /// Sends key updates that ask the peer for one of its own each (RFC 8446, section 4.6.3).
    func sendKeyUpdates(_ count: Int, on connection: ClientConnection) {
        guard connection.state == .open, let session = connection.session else { return }
        ERR_clear_error()
        for _ in 0..<count {
            guard SSL_key_update(session, SSL_KEY_UPDATE_REQUESTED) == 1,
                SSL_do_handshake(session) == 1
            else { return fail(connection, "TLS: \(TLSClient.reason())") }
        }
        flush(connection)
    }
}
