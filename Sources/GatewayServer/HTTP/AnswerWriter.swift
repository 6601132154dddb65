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
/// A long answer is written in several rounds; between them the event loop serves its other channels.
///
/// Bound to its channel's event loop.
final class AnswerWriter {
    /// The size of a piece. A peer that takes one in each `timeout` may go on.
    static let pieceBytes = 16 * 1024
    /// The maximum number of pieces in one round, and in flight at once.
    static let piecesMax = 16
    /// The pause between two rounds. Without it, the loop would return to the answer before it looked
    /// at any socket.
    static let pause = TimeAmount.microseconds(20)

    private let isHTTP2: Bool
    private let timeout: TimeAmount
    private let connection: AnswerProgress
    /// `nil` once the channel is gone.
    private var onStall: ((_ connectionToo: Bool) -> Void)?
    /// Called when the rest of an answer for which `write` returned false has been written.
    var onWritten: () -> Void = {}
    /// The rest of an answer's body, which is written in the next rounds.
    private var rest: ByteBuffer?
    private var unwritten = 0
    private var lastProgress = NIODeadline.uptimeNanoseconds(0)
    private var timer: Scheduled<Void>?
    /// The next round.
    private var continuation: Scheduled<Void>?

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
        continuation?.cancel()
        continuation = nil
        rest = nil
        onStall = nil
        onWritten = {}
    }

    /// Writes an answer and flushes it. The answer before it must have been written to its end.
    ///
    /// - Returns: Whether all of it was written; if not, the rest follows.
    func write(_ answer: GatewayAnswer, to gate: ChannelHandlerContext) -> Bool {
        if isHTTP2 {
            var head = answer.head
            if let body = answer.body {
                head.headers.add(name: FieldName.contentLength, value: String(body.readableBytes))
            }
            gate.write(StreamGate.wrapOutboundOut(.head(head)), promise: nil)
            rest = answer.body ?? ByteBuffer()
        } else {
            let (beginning, rest) = answer.http1(bodyBytesMax: Self.pieceBytes)
            write(beginning, to: gate)
            self.rest = rest
        }
        writeRest(to: gate)
        return rest == nil
    }

    /// Writes one round of the rest.
    private func writeRest(to gate: ChannelHandlerContext) {
        guard var body = rest else { return }
        // A piece that the kernel takes at once schedules no further round.
        rest = nil
        var pieces = 0
        while body.readableBytes > 0, pieces < Self.piecesMax, unwritten < Self.piecesMax {
            guard let piece = body.readSlice(length: min(Self.pieceBytes, body.readableBytes))
            else { break }
            write(piece, to: gate)
            pieces += 1
        }
        if body.readableBytes > 0 {
            rest = body
            if isHTTP2 { gate.flush() }
            if unwritten < Self.piecesMax { continueLater(gate) }
        } else if isHTTP2 {
            begin(gate) { gate.writeAndFlush(StreamGate.wrapOutboundOut(.end(nil)), promise: $0) }
        }
    }

    private func continueLater(_ gate: ChannelHandlerContext) {
        guard continuation == nil, onStall != nil else { return }
        continuation = gate.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
            self.continuation = nil
            self.writeRest(to: gate)
            if self.rest == nil { self.onWritten() }
        }
    }

    private func write(_ piece: ByteBuffer, to gate: ChannelHandlerContext) {
        begin(gate) { promise in
            if isHTTP2 {
                gate.write(
                    StreamGate.wrapOutboundOut(.body(.byteBuffer(piece))), promise: promise)
            } else {
                // Nothing between the gate and TLS looks at what goes out by HTTP/1.1. Each flush
                // makes records of its own, which are counted one by one.
                gate.writeAndFlush(NIOAny(IOData.byteBuffer(piece)), promise: promise)
            }
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
            if self.rest != nil { self.continueLater(gate) }
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
