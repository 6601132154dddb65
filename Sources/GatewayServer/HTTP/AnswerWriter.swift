import NIOCore
import NIOHTTP1

/// The answers on their way out of one connection, or of the streams of one HTTP/2 connection: when
/// its peer last took any part of one.
///
/// Bound to the connection's event loop.
final class AnswerProgress {
    /// `nil` as long as it has taken nothing.
    fileprivate(set) var last: NIODeadline?
}

/// Writes the answers of one channel, in pieces, and gives up on a peer that does not take them:
/// otherwise it could keep connections and answers for ever.
///
/// Bound to its channel's event loop.
final class AnswerWriter {
    /// The size of a piece. A peer that takes one in each `timeout` may go on.
    private static let pieceBytes = 16 * 1024

    private let isHTTP2: Bool
    private let timeout: TimeAmount
    private let connection: AnswerProgress
    /// `nil` once the channel is gone.
    private var onStall: ((_ connectionToo: Bool) -> Void)?
    private var unwritten = 0
    private var lastProgress = NIODeadline.uptimeNanoseconds(0)
    private var timer: Scheduled<Void>?

    /// - Parameters:
    ///   - connection: The progress of the whole connection.
    ///   - onStall: Called when nothing of an answer was taken for `timeout`; `connectionToo` when
    ///     nothing of any answer of the connection was.
    init(
        isHTTP2: Bool, timeout: TimeAmount, connection: AnswerProgress,
        onStall: @escaping (_ connectionToo: Bool) -> Void
    ) {
        self.isHTTP2 = isHTTP2
        self.timeout = timeout
        self.connection = connection
        self.onStall = onStall
    }

    /// Whether the peer has not taken everything yet.
    var isWriting: Bool { unwritten > 0 }

    /// Forgets everything: the channel is gone.
    func stop() {
        timer?.cancel()
        timer = nil
        onStall = nil
    }

    /// Writes an answer and flushes it.
    func write(_ answer: GatewayAnswer, to gate: ChannelHandlerContext) {
        guard isHTTP2 else {
            // Nothing between the gate and TLS looks at what goes out by HTTP/1.1.
            write(ByteBuffer(bytes: answer.http1), to: gate) { NIOAny(IOData.byteBuffer($0)) }
            return
        }
        var head = answer.head
        if let body = answer.body {
            head.headers.add(name: FieldName.contentLength, value: String(body.readableBytes))
        }
        gate.write(StreamGate.wrapOutboundOut(.head(head)), promise: nil)
        if let body = answer.body {
            write(body, to: gate) { StreamGate.wrapOutboundOut(.body(.byteBuffer($0))) }
        }
        begin(gate) { gate.writeAndFlush(StreamGate.wrapOutboundOut(.end(nil)), promise: $0) }
    }

    private func write(
        _ bytes: ByteBuffer, to gate: ChannelHandlerContext, _ wrap: (ByteBuffer) -> NIOAny
    ) {
        var rest = bytes
        while let piece = rest.readSlice(length: min(Self.pieceBytes, rest.readableBytes)) {
            // By HTTP/1.1 each flush makes records of its own, which are counted one by one.
            begin(gate) { promise in
                if isHTTP2 {
                    gate.write(wrap(piece), promise: promise)
                } else {
                    gate.writeAndFlush(wrap(piece), promise: promise)
                }
            }
            if rest.readableBytes == 0 { break }
        }
    }

    private func begin(
        _ gate: ChannelHandlerContext, _ write: (EventLoopPromise<Void>) -> Void
    ) {
        let loop = gate.eventLoop
        if unwritten == 0 { lastProgress = loop.now }
        unwritten += 1
        let promise = loop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in
            self.unwritten -= 1
            self.lastProgress = loop.now
            self.connection.last = self.lastProgress
        }
        write(promise)
        // Most often the kernel has taken it by now.
        if unwritten > 0 { startTimer(gate) }
    }

    private func startTimer(_ gate: ChannelHandlerContext) {
        guard timer == nil, onStall != nil else { return }
        let due = lastProgress + timeout
        timer = gate.eventLoop.assumeIsolated().scheduleTask(deadline: due) {
            self.timer = nil
            guard self.unwritten > 0 else { return }
            let now = gate.eventLoop.now
            if now >= self.lastProgress + self.timeout {
                let last = self.connection.last
                self.onStall?(last.map { now >= $0 + self.timeout } ?? true)
            } else {
                self.startTimer(gate)
            }
        }
    }
}
