import COpenSSL
import Glibc

/// A TLS connection that passes from one owner to the next: its socket, and OpenSSL's object or the
/// record layer that replaces it.
///
/// A `TLSAcceptor` makes it and hands it to a channel, behind a `TLSServerHandler`, or to the
/// `TLSStreams` of an event loop. Parts that no owner has taken are freed with it.
// Sound: it has one owner at a time, on one thread; who hands it on touches it no more.
package final class TLSConnection: @unchecked Sendable {
    /// OpenSSL's object; `nil` once it has been taken or is no longer needed.
    private(set) var ssl: OpaquePointer?
    /// The secrets of `ssl`, until it is clear that the connection stays with OpenSSL.
    private(set) var secrets: UnsafeMutablePointer<TrafficSecrets>?
    /// The record layer that replaces OpenSSL's object.
    private var layer: UnsafeMutablePointer<RecordLayer>?
    /// The socket; -1 once it has been taken.
    private(set) var socket: Int32
    /// The protocol that ALPN chose; `nil` before the handshake is done, and for a client without
    /// ALPN, which speaks HTTP/1.1.
    package private(set) var negotiatedProtocol: String?
    /// Whether the session was resumed from a ticket.
    package private(set) var isResumed = false
    /// The far end of the connection.
    package private(set) var peer: TLSPeer
    /// Keeps the context alive for the handshake, which reads it, even if the identity is replaced.
    private let context: TLSContext?
    /// Keeps the connection counted until it is released, with this object or by the owner that
    /// took it.
    private var permit: ConnectionPermit?

    /// The server's side of a connection that has just been accepted. Returns `nil` when OpenSSL
    /// has no memory; the socket is not closed and the permit not released then.
    init?(
        _ context: TLSContext, socket: Int32, from peer: TLSPeer, permit: ConnectionPermit,
        offersHTTP2: Bool = true
    ) {
        guard let ssl = SSL_new(context.pointer) else { return nil }
        SSL_set_accept_state(ssl)
        if !offersHTTP2 { ALPNList.restrictToHTTP1(ssl) }
        (self.ssl, self.socket, self.context, self.permit) = (ssl, socket, context, permit)
        self.peer = peer
        secrets = TrafficSecrets.attach(to: ssl)
    }

    /// A connection taken back out of its channel, with a second descriptor of its socket.
    init(_ other: TLSConnection, socket: Int32) {
        (ssl, secrets) = (other.ssl, other.secrets)
        (other.ssl, other.secrets) = (nil, nil)
        (negotiatedProtocol, isResumed) = (other.negotiatedProtocol, other.isResumed)
        (self.socket, peer) = (socket, other.peer)
        // The handshake is done.
        context = nil
        permit = other.takePermit()
    }

    deinit {
        free()
        if socket >= 0 { Glibc.close(socket) }
        permit?.release()
    }

    private func free() {
        freeSecrets()
        if let ssl { SSL_free(ssl) }
        ssl = nil
        if let layer { RecordLayer.free(layer) }
        layer = nil
    }

    private func freeSecrets() {
        guard let secrets else { return }
        if let ssl { TrafficSecrets.detach(from: ssl) }
        TrafficSecrets.free(secrets)
        self.secrets = nil
    }

    /// Counts the connection for the address of its client, as a proxy stated it; returns false when
    /// that address is at its limit.
    func count(for client: SourceAddress) -> Bool {
        peer.address = client
        guard let counted = permit?.counted(for: client) else { return false }
        permit = counted
        return true
    }

    /// Makes OpenSSL read from and write to the wire of the calling thread.
    func use(_ wire: MemoryBIO) {
        guard let ssl else { return }
        // The object frees one reference per direction.
        BIO_up_ref(wire.bio)
        BIO_up_ref(wire.bio)
        SSL_set0_rbio(ssl, wire.bio)
        SSL_set0_wbio(ssl, wire.bio)
    }

    /// Reads the outcome of the handshake that has just completed.
    func becomeOpen() {
        guard let ssl else { return }
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &name, &length)
        if let name, length > 0 {
            negotiatedProtocol = String(
                decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
        }
        isResumed = SSL_session_reused(ssl) == 1
        // Only streams of HTTP/1.1 leave OpenSSL.
        if negotiatedProtocol == "h2" { freeSecrets() }
    }

    /// The URIs in the client's verified certificate; empty without one, and once OpenSSL's object
    /// is gone. Parses the certificate, so read it once per request or connection.
    package var peerCertificateURIs: [String] { ssl.map { PeerCertificate.uris(of: $0) } ?? [] }

    /// The user id in the subject of the client's verified certificate; `nil` without one, and once
    /// OpenSSL's object is gone.
    package var peerCertificateUserID: String? { ssl.flatMap { PeerCertificate.userID(of: $0) } }

    /// Replaces OpenSSL's object with a record layer, if that can take over. Afterwards only
    /// `TLSStreams` can use the connection.
    package func becomeStream() {
        guard layer == nil, let ssl, let secrets, let wire = MemoryBIO.ofThread(),
            let expander = wire.expander, let next = RecordLayer(of: ssl, secrets.pointee)
        else { return }
        let place = RecordLayer.allocate(next)
        guard place.pointee.prepare(expander) else { return RecordLayer.free(place) }
        free()
        layer = place
    }

    /// Returns the socket, which the caller closes.
    package func takeSocket() -> Int32 {
        defer { socket = -1 }
        return socket
    }

    /// Returns the permit, which the caller releases.
    func takePermit() -> ConnectionPermit? {
        defer { permit = nil }
        return permit
    }

    /// Returns the engine of a stream's records, which the caller frees; `nil` when it has been
    /// taken before.
    func takeEngine(_ wire: MemoryBIO) -> TLSStream.Engine? {
        becomeStream()
        if let layer {
            self.layer = nil
            return .records(layer)
        }
        guard let ssl else { return nil }
        freeSecrets()
        use(wire)
        self.ssl = nil
        return .openSSL(ssl)
    }
}
