import COpenSSL
import Glibc

/// A TLS connection on its way from one owner to the next: its socket, and OpenSSL's object or what
/// goes on without it.
///
/// It begins with `Arrivals`, and goes from there into a channel, behind a `TLSServerHandler`, or to
/// the `TLSStreams` of an event loop. What nobody has taken from it is freed with it.
// Sound: it has one owner at a time, on one thread; who hands it on touches it no more.
package final class TLSConnection: @unchecked Sendable {
    /// OpenSSL's object; `nil` once it is taken or was not needed any more.
    private(set) var ssl: OpaquePointer?
    /// Beside `ssl`, until it is known that the connection stays with OpenSSL.
    private(set) var secrets: UnsafeMutablePointer<TrafficSecrets>?
    /// What goes on without OpenSSL's object.
    private var layer: UnsafeMutablePointer<RecordLayer>?
    /// The socket; -1 once it is taken.
    private(set) var socket: Int32
    /// What ALPN chose; `nil` before the handshake is done and for a client without ALPN, which
    /// speaks HTTP/1.1.
    package private(set) var negotiatedProtocol: String?
    /// The session was resumed from a ticket.
    package private(set) var isResumed = false
    /// What the handshake reads beside OpenSSL's own: a context that is replaced meanwhile lives on.
    private let context: TLSContext?
    /// The connection is counted as long as this object lives, or whoever took the permit from it.
    private var permit: ConnectionPermit?

    /// The server's side of a connection that has just been accepted; `nil` when OpenSSL has no memory for it, and then nothing is closed or counted out.
    init?(
        _ context: TLSContext, socket: Int32, permit: ConnectionPermit, offersHTTP2: Bool = true
    ) {
        guard let ssl = SSL_new(context.pointer) else { return nil }
        SSL_set_accept_state(ssl)
        if !offersHTTP2 { ALPNList.restrictToHTTP1(ssl) }
        (self.ssl, self.socket, self.context, self.permit) = (ssl, socket, context, permit)
        secrets = TrafficSecrets.attach(to: ssl)
    }

    /// A connection that comes back out of its channel with a second descriptor of its socket.
    init(_ other: TLSConnection, socket: Int32) {
        (ssl, secrets) = (other.ssl, other.secrets)
        (other.ssl, other.secrets) = (nil, nil)
        (negotiatedProtocol, isResumed) = (other.negotiatedProtocol, other.isResumed)
        self.socket = socket
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

    /// Has OpenSSL read from and write to the wire of the calling thread.
    func use(_ wire: TLSWire) {
        guard let ssl else { return }
        // The object frees one reference per direction.
        BIO_up_ref(wire.bio)
        BIO_up_ref(wire.bio)
        SSL_set0_rbio(ssl, wire.bio)
        SSL_set0_wbio(ssl, wire.bio)
    }

    /// The handshake is done.
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
    /// is gone. Read once per request or connection: it parses.
    package var peerCertificateURIs: [String] { ssl.map { PeerCertificate.uris(of: $0) } ?? [] }

    /// The user id in the subject of the client's verified certificate; `nil` without one, and once
    /// OpenSSL's object is gone.
    package var peerCertificateUserID: String? { ssl.flatMap { PeerCertificate.userID(of: $0) } }

    /// Gives up OpenSSL's object, if a handful of keys can go on without it.
    ///
    /// The connection is for `TLSStreams` from here on.
    package func becomeStream() {
        guard layer == nil, let ssl, let secrets, let wire = TLSWire.ofThread(),
            let expander = wire.expander, let next = RecordLayer(of: ssl, secrets.pointee)
        else { return }
        let place = RecordLayer.allocate(next)
        guard place.pointee.prepare(expander) else { return RecordLayer.free(place) }
        free()
        layer = place
    }

    /// The socket, which the caller closes.
    package func takeSocket() -> Int32 {
        defer { socket = -1 }
        return socket
    }

    /// The permit, which the caller releases.
    func takePermit() -> ConnectionPermit? {
        defer { permit = nil }
        return permit
    }

    /// What makes the records of a stream, which the caller frees; `nil` when it was taken before.
    func takeEngine(_ wire: TLSWire) -> TLSStream.Engine? {
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
