import GatewayEngine
import NIOCore
import NIOExtras
import NIOHTTP2

/// Tells the streams of an HTTP/2 connection that the peer has ended its side: no further request,
/// and no part of one, will come.
struct HTTP2InputClosed: Sendable {}

/// Ends an HTTP/2 connection that was idle for too long, that its peer has ended, or when the
/// server stops.
// Sound: NIO calls handler and stream delegate on the connection's event loop only.
final class HTTP2ConnectionEnd: ChannelInboundHandler, NIOHTTP2StreamDelegate, @unchecked Sendable {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    /// The time for requests in flight when the server stops.
    private static let grace = TimeAmount.seconds(2)

    private let firstRequestTimeout: TimeAmount
    private let idleTimeout: TimeAmount
    private var context: ChannelHandlerContext?
    private var openStreams: [HTTP2StreamID: any Channel] = [:]
    private var newestStream = HTTP2StreamID.rootStream
    private var isInputClosed = false
    private var idleTimer: Scheduled<Void>?

    init(firstRequestTimeout: TimeAmount, idleTimeout: TimeAmount) {
        self.firstRequestTimeout = firstRequestTimeout
        self.idleTimeout = idleTimeout
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        startIdleTimer(firstRequestTimeout, context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        idleTimer?.cancel()
        self.context = nil
    }

    func streamCreated(_ id: HTTP2StreamID, channel: any Channel) {
        openStreams[id] = channel
        newestStream = max(newestStream, id)
        idleTimer?.cancel()
        idleTimer = nil
    }

    func streamClosed(_ id: HTTP2StreamID, channel: any Channel) {
        openStreams[id] = nil
        guard openStreams.isEmpty, let context else { return }
        startIdleTimer(isInputClosed ? .zero : idleTimeout, context)
    }

    /// Whether a stream was open before; only clients open streams, and theirs have odd ids.
    func isOver(_ id: UInt32) -> Bool {
        guard id % 2 == 1, let number = Int32(exactly: id) else { return false }
        let id = HTTP2StreamID(number)
        return id <= newestStream && openStreams[id] == nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        idleTimer?.cancel()
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent:
            end(after: openStreams.isEmpty ? .zero : Self.grace, context)
        case ChannelEvent.inputClosed:
            isInputClosed = true
            // The frames of the last read reach their streams after this event.
            context.eventLoop.assumeIsolated().execute { self.closeInput() }
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    private func closeInput() {
        guard let context else { return }
        if openStreams.isEmpty { startIdleTimer(.zero, context) }
        for stream in openStreams.values {
            stream.pipeline.fireUserInboundEventTriggered(HTTP2InputClosed())
        }
    }

    private func startIdleTimer(_ time: TimeAmount, _ context: ChannelHandlerContext) {
        idleTimer?.cancel()
        idleTimer = context.eventLoop.assumeIsolated().scheduleTask(in: time) {
            self.end(after: .zero, context)
        }
    }

    /// Sends GOAWAY, and closes after a time with another one that names the newest request: a
    /// client whose later request was in flight then knows that it was not processed, and repeats
    /// it elsewhere (RFC 9113 section 6.8).
    private func end(after time: TimeAmount, _ context: ChannelHandlerContext) {
        if time > .zero { sendGoAway(upTo: .maxID, context) }
        context.eventLoop.assumeIsolated().scheduleTask(in: time) {
            self.sendGoAway(upTo: self.newestStream, context)
            context.close(promise: nil)
        }
    }

    private func sendGoAway(upTo last: HTTP2StreamID, _ context: ChannelHandlerContext) {
        let frame = HTTP2Frame(
            streamID: .rootStream,
            payload: .goAway(lastStreamID: last, errorCode: .noError, opaqueData: nil))
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }
}

/// Ends an HTTP/2 connection whose peer violated the protocol. It is placed before NIO's HTTP/2
/// handler, which sends GOAWAY and leaves the rest to others: such a peer must not keep the
/// connection. Errors of one stream reset that stream and do not reach this handler.
final class HTTP2ProtocolErrorEnd: ChannelOutboundHandler {
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// Length of a frame's header, and of GOAWAY's last stream id (RFC 9113 sections 4.1 and 6.8).
    private static let errorCodeOffset = 9 + 4
    private static let goAwayType: UInt8 = 7
    private var mustClose = false

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .byteBuffer(let frame) = unwrapOutboundIn(data),
            frame.getInteger(at: frame.readerIndex + 3, as: UInt8.self) == Self.goAwayType,
            let code = frame.getInteger(
                at: frame.readerIndex + Self.errorCodeOffset, as: UInt32.self), code != 0
        {
            mustClose = true
        }
        context.write(data, promise: promise)
    }

    func flush(context: ChannelHandlerContext) {
        context.flush()
        if mustClose { context.close(promise: nil) }
    }
}
