import COpenSSL
import NIOCore
import NIOTLS

/// TLS for one accepted connection.
///
/// Must be the first handler of the pipeline that writes: it takes every byte that goes out as its
/// own. It is bound to the channel's event loop; all members are used on that loop only.
///
/// Per connection it keeps OpenSSL's object and this one, nothing else: ciphertext is lent to
/// OpenSSL through a wire that the connections of a thread share (`TLSWire`).
///
/// Events it fires: `TLSUserEvent.handshakeCompleted` once; `ChannelEvent.inputClosed` when the peer
/// has ended its side, by `close_notify` or by TCP alone (then `inputTruncated` is set), if the
/// channel allows half closure; `errorCaught` with a `TLSError` when a handshake fails or the peer
/// breaks the protocol. After an error the connection is closed by this handler.
package final class TLSServerHandler: ChannelDuplexHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = IOData
    package typealias OutboundOut = ByteBuffer

    /// Where a connection stands.
    enum Phase {
        /// In a pipeline whose channel is not active yet. To `handshaking` when it is.
        case idle
        /// To `open` when the handshake is done, to `closing` when it fails, to `closed` at its
        /// deadline.
        case handshaking
        /// Bytes go both ways. To `closing` by `close`, by a protocol error, or by the peer's
        /// `close_notify` when half closure is not allowed.
        case open
        /// Our last record is on its way; waits for the peer's end or the deadline.
        case closing
        /// The channel is inactive or the handler is removed: nothing is sent or fired any more.
        case closed
    }

    /// A write that waits for its flush or for the end of the handshake.
    struct PendingWrite {
        var bytes: ByteBuffer
        var promise: EventLoopPromise<Void>?
    }

    let settings: TLSServerSettings
    var phase = Phase.idle
    /// Set with the phase `handshaking`, `nil` again with `closed`.
    var ssl: OpaquePointer?
    /// Kept for the handshake, which reads its ALPN list.
    private var tls: TLSContext?
    /// Beside `ssl`, for a connection that may leave its channel.
    var secrets: UnsafeMutablePointer<TrafficSecrets>?
    // Sound: OpenSSL writes to it within our calls only; freed after `ssl` forgot it.
    var wire: TLSWire?
    var loopCounters: TLSLoopCounters?
    var context: ChannelHandlerContext?
    /// The handshake's deadline, later the close's.
    var deadline: DeadlineQueue.Deadline?

    var pending: [PendingWrite] = []
    var pendingBytes = 0
    var flushWhenOpen = false
    /// Ciphertext owed to the peer's own demands and not taken by the kernel yet.
    var unreadAnswersBytes = 0
    var drainOwed = false
    var inputClosed = false
    var outputClosed = false
    /// Only the peer's `close_notify` is still read.
    var goodbyeAwaited = false
    var readWanted = false

    /// Ciphertext bytes of ours that NIO holds because the socket was full.
    package internal(set) var queuedBytes = 0
    /// Called on the loop when `queuedBytes` is zero again after a flush left something queued. Not
    /// called when the connection closes instead.
    package var onDrained: (() -> Void)?
    /// What ALPN chose; `nil` before the handshake is done and for a client without ALPN, which
    /// speaks HTTP/1.1.
    package internal(set) var negotiatedProtocol: String?
    /// The peer ended the connection without `close_notify`: what it sent may be cut short.
    package internal(set) var inputTruncated = false
    /// The session was resumed from a ticket.
    package internal(set) var isResumed = false

    /// A handler for one connection, with the certificate that `identity` holds now.
    package init(identity: TLSIdentity, settings: TLSServerSettings) {
        tls = identity.current
        self.settings = settings
    }

    deinit {
        // Only when the handler never left a pipeline in the ordinary way.
        if let ssl { SSL_free(ssl) }
        if let secrets { TrafficSecrets.free(secrets) }
    }

    // MARK: What the peer showed

    /// The protocol version as OpenSSL names it, such as `TLSv1.3`; `nil` outside a connection.
    package var protocolVersion: String? {
        connected.flatMap { SSL_get_version($0) }.map { String(cString: $0) }
    }

    /// The cipher suite as OpenSSL names it; `nil` outside a connection.
    package var cipherName: String? {
        connected.flatMap { SSL_CIPHER_get_name(SSL_get_current_cipher($0)) }
            .map { String(cString: $0) }
    }

    /// The URIs in the client's verified certificate; empty without one. Read once per request or
    /// connection: it parses.
    package var peerCertificateURIs: [String] {
        connected.map { PeerCertificate.uris(of: $0) } ?? []
    }

    private var connected: OpaquePointer? {
        switch phase {
        case .open, .closing: ssl
        case .idle, .handshaking, .closed: nil
        }
    }

    // MARK: Start and end

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { start(context) }
    }

    package func channelActive(context: ChannelHandlerContext) {
        if phase == .idle { start(context) }
        context.fireChannelActive()
    }

    private func start(_ context: ChannelHandlerContext) {
        guard let tls, let wire = TLSWire.ofThread(), let ssl = SSL_new(tls.pointer) else {
            let reason = OpenSSLErrors.takeReason()
            context.fireErrorCaught(TLSError(.engine, "no TLS connection: \(reason)"))
            context.close(promise: nil)
            return
        }
        // The SSL object frees one reference per direction.
        BIO_up_ref(wire.bio)
        BIO_up_ref(wire.bio)
        SSL_set0_rbio(ssl, wire.bio)
        SSL_set0_wbio(ssl, wire.bio)
        SSL_set_accept_state(ssl)
        self.ssl = ssl
        secrets = TrafficSecrets.attach(to: ssl)
        self.wire = wire
        loopCounters = settings.counters.ofLoop(ObjectIdentifier(context.eventLoop))
        phase = .handshaking
        setDeadline(settings.handshakeTimeout, context)
        // With automatic reading off nobody else asks for the client's first flight.
        context.read()
    }

    package func channelInactive(context: ChannelHandlerContext) {
        switch phase {
        case .handshaking: loopCounters?.failed(.other)
        case .open where !inputClosed: inputTruncated = true
        case .idle, .open, .closing, .closed: break
        }
        release()
        context.fireChannelInactive()
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        release()
        self.context = nil
    }

    /// Forgets everything that belongs to the connection.
    func release() {
        phase = .closed
        onDrained = nil
        deadline?.cancel()
        deadline = nil
        if let ssl { SSL_free(ssl) }
        ssl = nil
        if let secrets { TrafficSecrets.free(secrets) }
        secrets = nil
        tls = nil
        wire = nil
        failPending(ChannelError.ioOnClosedChannel)
    }

    func failPending(_ error: any Error) {
        let writes = pending
        pending = []
        pendingBytes = 0
        for write in writes { write.promise?.fail(error) }
    }

    func setDeadline(_ time: TimeAmount, _ context: ChannelHandlerContext) {
        deadline?.cancel()
        deadline = DeadlineQueue.set(time, context.eventLoop, for: self)
    }
}
