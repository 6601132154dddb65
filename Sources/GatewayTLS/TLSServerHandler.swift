import COpenSSL
import NIOCore

/// TLS for one connection whose handshake is done.
///
/// Must be the first handler of the pipeline that writes: it treats every outbound byte as
/// plaintext of its connection. All members are used on the channel's event loop only.
///
/// Per connection it keeps OpenSSL's object and this one, nothing else: ciphertext is lent to
/// OpenSSL through a wire that the connections of a thread share (`MemoryBIO`). `TLSStream` says
/// what an event stream saves without them.
///
/// It fires `ChannelEvent.inputClosed` when the peer has ended its side, by `close_notify` or by
/// TCP alone (`inputTruncated` is set then), if the channel allows half closure. It fires
/// `errorCaught` with a `TLSError` when the peer breaks the protocol, and then closes the
/// connection.
package final class TLSServerHandler: ChannelDuplexHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = IOData
    package typealias OutboundOut = ByteBuffer

    enum Phase {
        /// In a pipeline whose channel is not active yet. To `open` when it becomes active.
        case idle
        /// Bytes flow both ways. To `closing` by `close`, or by the peer's `close_notify` when half
        /// closure is not allowed; to `failing` by a protocol error.
        case open
        /// Our last record is being sent; waiting for the peer's `close_notify`, the end of its side
        /// or the deadline.
        case closing
        /// The peer broke the protocol: as `closing`, but its input is discarded.
        case failing
        /// The channel is inactive or the handler is removed: nothing is sent or fired any more.
        case closed
    }

    /// The peer's side of the connection.
    enum Input {
        /// The peer may send more.
        case open
        /// Ended by the peer's `close_notify`, or by our own `close`.
        case closed
        /// Ended without `close_notify`: data may be missing.
        case truncated
    }

    /// A write that waits for its flush.
    struct PendingWrite {
        var bytes: ByteBuffer
        var promise: EventLoopPromise<Void>?
    }

    let settings: TLSServerSettings
    var phase = Phase.idle
    /// `nil` once the connection has been detached or has ended.
    var connection: TLSConnection?
    /// The reads made before the channel became active; `nil` once they have been handed on.
    private var first: ReadPass?
    // Sound: OpenSSL writes to it within our calls only; it is gone with `connection`.
    var wire: MemoryBIO?
    var loopCounters: TLSLoopCounters?
    var context: ChannelHandlerContext?
    /// The deadline for closing.
    var deadline: Scheduled<Void>?

    /// OpenSSL's object.
    var ssl: OpaquePointer? { connection?.ssl }

    var pending: [PendingWrite] = []
    var pendingBytes = 0
    /// Bytes of ciphertext that answer the peer's own requests, not accepted by the kernel yet.
    var unreadAnswersBytes = 0
    var drainOwed = false
    /// The peer's budget for records without content.
    var emptyRecords = InputBudget(now: .now())
    private var peerInput = Input.open
    var outputClosed = false
    var readWanted = false
    /// The time up to which closing waits for a peer that is still sending; `nil` for no such wait.
    package var lingersUntil: NIODeadline?
    /// The time when bytes arrived last since the deadline for closing was set.
    var heardAt: NIODeadline?

    /// Bytes of our ciphertext that NIO holds because the socket was full.
    package internal(set) var queuedBytes = 0
    /// Called on the loop when `queuedBytes` is zero again after a flush left bytes queued; not
    /// called if the connection closes instead.
    package var onDrained: (() -> Void)?
    /// The protocol that ALPN chose; `nil` for a client without ALPN, which speaks HTTP/1.1.
    package let negotiatedProtocol: String?
    /// Whether nothing more is read from the peer.
    var inputClosed: Bool { peerInput != .open }
    /// Whether the peer ended the connection without `close_notify`, so that its data may be cut
    /// short.
    package var inputTruncated: Bool { peerInput == .truncated }
    /// Whether the session was resumed from a ticket.
    package let isResumed: Bool
    /// The far end of the connection.
    package let peer: TLSPeer

    /// A handler for a connection that shares its socket with the channel.
    package init(_ arrived: Arrived, settings: TLSServerSettings) {
        connection = arrived.connection
        first = arrived.first
        negotiatedProtocol = arrived.connection.negotiatedProtocol
        isResumed = arrived.connection.isResumed
        peer = arrived.connection.peer
        self.settings = settings
    }

    // MARK: The negotiated session

    /// The protocol version as OpenSSL names it, such as `TLSv1.3`; `nil` outside a connection.
    package var protocolVersion: String? {
        connected.flatMap { SSL_get_version($0) }.map { String(cString: $0) }
    }

    /// The cipher suite as OpenSSL names it; `nil` outside a connection.
    package var cipherName: String? {
        connected.flatMap { SSL_CIPHER_get_name(SSL_get_current_cipher($0)) }
            .map { String(cString: $0) }
    }

    /// The URIs in the client's verified certificate; empty without one. Parses the certificate, so
    /// read it once per request or connection.
    package var peerCertificateURIs: [String] {
        connected.map { PeerCertificate.uris(of: $0) } ?? []
    }

    private var connected: OpaquePointer? {
        switch phase {
        case .open, .closing, .failing: ssl
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
        guard let connection, let wire = MemoryBIO.ofThread() else {
            context.close(promise: nil)
            return
        }
        connection.use(wire)
        self.wire = wire
        loopCounters = settings.counters.ofLoop(ObjectIdentifier(context.eventLoop))
        phase = .open
    }

    package func channelInactive(context: ChannelHandlerContext) {
        if phase == .open { endInput(.truncated) }
        release()
        context.fireChannelInactive()
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        release()
        self.context = nil
    }

    /// Whether our last record has been sent or will never be.
    var isClosing: Bool { phase == .closing || phase == .failing }

    /// Ends the peer's side, unless it has ended already.
    func endInput(_ end: Input) {
        if peerInput == .open { peerInput = end }
    }

    /// Drops everything that belongs to the connection.
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
