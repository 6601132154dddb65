import COpenSSL
import NIOCore

/// TLS for one connection whose handshake is done.
///
/// Must be the first handler of the pipeline that writes: it takes every byte that goes out as its
/// own. It is bound to the channel's event loop; all members are used on that loop only.
///
/// Per connection it keeps OpenSSL's object and this one, nothing else: ciphertext is lent to
/// OpenSSL through a wire that the connections of a thread share (`TLSWire`).
///
/// Events it fires: `ChannelEvent.inputClosed` when the peer has ended its side, by `close_notify`
/// or by TCP alone (then `inputTruncated` is set), if the channel allows half closure;
/// `errorCaught` with a `TLSError` when the peer breaks the protocol. After an error the connection
/// is closed by this handler.
package final class TLSServerHandler: ChannelDuplexHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = IOData
    package typealias OutboundOut = ByteBuffer

    /// Where a connection stands.
    enum Phase {
        /// In a pipeline whose channel is not active yet. To `open` when it is.
        case idle
        /// Bytes go both ways. To `closing` by `close`, by a protocol error, or by the peer's
        /// `close_notify` when half closure is not allowed.
        case open
        /// Our last record is on its way; waits for the peer's end or the deadline.
        case closing
        /// The channel is inactive or the handler is removed: nothing is sent or fired any more.
        case closed
    }

    /// A write that waits for its flush.
    struct PendingWrite {
        var bytes: ByteBuffer
        var promise: EventLoopPromise<Void>?
    }

    let settings: TLSServerSettings
    var phase = Phase.idle
    /// `nil` once the connection has left, or has ended.
    var connection: TLSConnection?
    /// What the peer said before the channel was there, until it is.
    private var first: ReadPass?
    // Sound: OpenSSL writes to it within our calls only; it is gone with `connection`.
    var wire: TLSWire?
    var loopCounters: TLSLoopCounters?
    var context: ChannelHandlerContext?
    /// The close's deadline.
    var deadline: Scheduled<Void>?

    /// OpenSSL's object.
    var ssl: OpaquePointer? { connection?.ssl }

    var pending: [PendingWrite] = []
    var pendingBytes = 0
    /// Ciphertext owed to the peer's own demands and not taken by the kernel yet.
    var unreadAnswersBytes = 0
    var drainOwed = false
    var input = InputBudget(now: .now())
    var emptyInput = EmptyInput()
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
    /// What ALPN chose; `nil` for a client without ALPN, which speaks HTTP/1.1.
    package let negotiatedProtocol: String?
    /// The peer ended the connection without `close_notify`: what it sent may be cut short.
    package internal(set) var inputTruncated = false
    /// The session was resumed from a ticket.
    package let isResumed: Bool

    /// A handler for a connection whose socket is the channel's.
    package init(_ arrived: Arrived, settings: TLSServerSettings) {
        connection = arrived.connection
        first = arrived.first
        negotiatedProtocol = arrived.connection.negotiatedProtocol
        isResumed = arrived.connection.isResumed
        self.settings = settings
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
        case .idle, .closed: nil
        }
    }

    // MARK: Start and end

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    package func channelActive(context: ChannelHandlerContext) {
        if phase == .idle { start(context) }
        context.fireChannelActive()
        guard let first else { return }
        self.first = nil
        conclude(first, context)
        if phase == .open { context.fireChannelReadComplete() }
    }

    private func start(_ context: ChannelHandlerContext) {
        guard let connection, let wire = TLSWire.ofThread() else {
            context.close(promise: nil)
            return
        }
        connection.use(wire)
        self.wire = wire
        loopCounters = settings.counters.ofLoop(ObjectIdentifier(context.eventLoop))
        phase = .open
    }

    package func channelInactive(context: ChannelHandlerContext) {
        if phase == .open, !inputClosed { inputTruncated = true }
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
        connection = nil
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
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: time) {
            self.deadlinePassed()
        }
    }
}
