import GatewayEngine
import NIOCore
import NIOHTTP1

/// The progress of all responses and bodies of one connection. The streams of HTTP/2 share its
/// bandwidth, and one may wait long for its turn. Used on the connection's event loop only.
final class ConnectionProgress {
    /// When the peer last accepted part of a response; `nil` as long as it has accepted nothing.
    var last: NIODeadline?
    /// The end of the time for bodies by the pace of all of them together.
    private(set) var bodiesDue = NIODeadline.distantPast

    /// Records that bytes of a body arrived.
    func received(_ count: Int, now: NIODeadline, _ settings: ConnectionSettings) {
        bodiesDue = settings.due(max(bodiesDue, now), after: count, now: now)
    }
}

/// Writes the responses of one channel, in pieces, and gives up on a peer that does not accept
/// them: otherwise it could keep connections and responses forever. Between the rounds of a long
/// response the event loop serves its other channels.
///
/// Used on its channel's event loop only.
final class ResponseWriter {
    /// The size of a piece. A peer that accepts one in each `timeout` may continue.
    static let pieceBytes = 16 * 1024
    /// The maximum number of pieces in one round, and in flight at once.
    static let piecesMax = 16
    /// The pause between two rounds. Without it, the loop would return to the response before it
    /// polled any socket.
    static let pause = TimeAmount.microseconds(20)

    private let isHTTP2: Bool
    private let timeout: TimeAmount
    private let connection: ConnectionProgress
    /// `nil` once the channel is gone.
    private var onStall: ((_ connectionToo: Bool) -> Void)?
    /// `nil` once the channel is gone.
    private var onWritten: (() -> Void)?
    /// The rest of a response's body, which is written in the next rounds.
    private var rest: ByteBuffer?
    /// Whether the pieces of the response's body are chunks of HTTP/1.1.
    private var isChunked = false
    private var unwritten = 0
    private var lastProgress = NIODeadline.uptimeNanoseconds(0)
    private var timer: Scheduled<Void>?
    /// The next round.
    private var continuation: Scheduled<Void>?

    /// - Parameters:
    ///   - connection: The progress of the whole connection.
    ///   - onStall: Called when nothing of a response was accepted for `timeout`; `connectionToo`
    ///     if the same is true of all responses of the connection.
    ///   - onWritten: Called when the rest of a response has been written, after `write` returned
    ///     false.
    init(
        isHTTP2: Bool, timeout: TimeAmount, connection: ConnectionProgress,
        onStall: @escaping (_ connectionToo: Bool) -> Void, onWritten: @escaping () -> Void
    ) {
        self.isHTTP2 = isHTTP2
        self.timeout = timeout
        self.connection = connection
        self.onStall = onStall
        self.onWritten = onWritten
    }

    /// Whether the peer has not accepted everything yet.
    var isWriting: Bool { unwritten > 0 }

    /// Releases all state: the channel is gone.
    func stop() {
        timer?.cancel()
        timer = nil
        continuation?.cancel()
        continuation = nil
        rest = nil
        onStall = nil
        onWritten = nil
    }

    /// Writes a response and flushes it. The previous response must have been written completely.
    /// Returns whether all of it was written; if not, the rest follows.
    func write(_ answer: RouteResponse, to context: ChannelHandlerContext) -> Bool {
        if isHTTP2 {
            var head = answer.head
            if let length = answer.contentLength {
                head.headers.add(name: FieldName.contentLength, value: String(length))
            }
            context.write(HTTPConnectionHandler.wrapOutboundOut(.head(head)), promise: nil)
            rest = answer.body ?? ByteBuffer()
        } else {
            let (beginning, rest) = answer.http1(bodyBytesMax: Self.pieceBytes)
            write(beginning, to: context)
            self.rest = rest
        }
        writeRest(to: context)
        return rest == nil
    }

    /// Begins a response whose body follows in pieces. The previous response must have been written
    /// completely.
    ///
    /// - Parameter isChunked: Whether an HTTP/1 peer supports the chunked coding; otherwise the
    ///   connection has to end with the response.
    func begin(_ head: HTTPResponseHead, isChunked: Bool, to context: ChannelHandlerContext) {
        self.isChunked = isChunked && !isHTTP2
        if isHTTP2 {
            context.writeAndFlush(HTTPConnectionHandler.wrapOutboundOut(.head(head)), promise: nil)
        } else {
            write(head.http1(isChunked: isChunked), to: context)
        }
    }

    /// Writes and flushes a piece that is not empty; the future succeeds when it has been sent.
    func append(_ piece: ByteBuffer, to context: ChannelHandlerContext) -> EventLoopFuture<Void> {
        defer { if isHTTP2 { context.flush() } }
        guard isChunked else { return write(piece, to: context) }
        let chunk = ChunkedCoding.chunk(of: Array(piece.readableBytesView))
        return write(ByteBuffer(bytes: chunk.bytes), to: context)
    }

    /// Ends a response whose body came in pieces.
    func end(to context: ChannelHandlerContext) {
        if isHTTP2 {
            begin(context) {
                context.writeAndFlush(HTTPConnectionHandler.wrapOutboundOut(.end(nil)), promise: $0)
            }
        } else if isChunked {
            write(ByteBuffer(bytes: ChunkedCoding.last), to: context)
        }
    }

    /// Writes one round of the rest.
    private func writeRest(to context: ChannelHandlerContext) {
        guard var body = rest else { return }
        // A piece that the kernel accepts at once schedules no further round.
        rest = nil
        var pieces = 0
        while body.readableBytes > 0, pieces < Self.piecesMax, unwritten < Self.piecesMax {
            guard let piece = body.readSlice(length: min(Self.pieceBytes, body.readableBytes))
            else { break }
            write(piece, to: context)
            pieces += 1
        }
        if body.readableBytes > 0 {
            rest = body
            if isHTTP2 { context.flush() }
            if unwritten < Self.piecesMax { continueLater(context) }
        } else if isHTTP2 {
            begin(context) {
                context.writeAndFlush(HTTPConnectionHandler.wrapOutboundOut(.end(nil)), promise: $0)
            }
        }
    }

    private func continueLater(_ context: ChannelHandlerContext) {
        guard continuation == nil, onStall != nil else { return }
        continuation = context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
            self.continuation = nil
            self.writeRest(to: context)
            if self.rest == nil { self.onWritten?() }
        }
    }

    @discardableResult
    private func write(
        _ piece: ByteBuffer, to context: ChannelHandlerContext
    ) -> EventLoopFuture<Void> {
        begin(context) { promise in
            if isHTTP2 {
                context.write(
                    HTTPConnectionHandler.wrapOutboundOut(.body(.byteBuffer(piece))),
                    promise: promise)
            } else {
                // No handler between this writer and TLS inspects HTTP/1.1 output. Each flush makes
                // records of its own, which are counted one by one.
                context.writeAndFlush(NIOAny(IOData.byteBuffer(piece)), promise: promise)
            }
        }
    }

    @discardableResult
    private func begin(
        _ context: ChannelHandlerContext, _ write: (EventLoopPromise<Void>) -> Void
    ) -> EventLoopFuture<Void> {
        let loop = context.eventLoop
        if unwritten == 0 { lastProgress = loop.now }
        unwritten += 1
        let promise = loop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in
            self.unwritten -= 1
            self.lastProgress = loop.now
            self.connection.last = self.lastProgress
            if self.rest != nil { self.continueLater(context) }
        }
        write(promise)
        // In most cases the kernel has accepted it by now.
        if unwritten > 0 { startTimer(context) }
        return promise.futureResult
    }

    private func startTimer(_ context: ChannelHandlerContext) {
        guard timer == nil, onStall != nil else { return }
        let due = lastProgress + timeout
        timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: due) {
            self.timer = nil
            guard self.unwritten > 0 else { return }
            let now = context.eventLoop.now
            if now >= self.lastProgress + self.timeout {
                let last = self.connection.last
                self.onStall?(last.map { now >= $0 + self.timeout } ?? true)
            } else {
                self.startTimer(context)
            }
        }
    }
}
