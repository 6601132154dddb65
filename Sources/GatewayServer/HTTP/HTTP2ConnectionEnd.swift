import NIOCore
import NIOExtras
import NIOHTTP2

/// Ends an HTTP/2 connection: when the peer broke the protocol, when nobody used it for too long,
/// and when the server stops.
// Sound: NIO calls handler and stream delegate on the connection's event loop only.
final class HTTP2ConnectionEnd: ChannelInboundHandler, NIOHTTP2StreamDelegate, @unchecked Sendable {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    /// For requests that are under way when the server stops.
    private static let grace = TimeAmount.seconds(2)

    private let firstRequestTimeout: TimeAmount
    private let idleTimeout: TimeAmount
    private var context: ChannelHandlerContext?
    private var openStreams = 0
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
        openStreams += 1
        idleTimer?.cancel()
        idleTimer = nil
    }

    func streamClosed(_ id: HTTP2StreamID, channel: any Channel) {
        openStreams -= 1
        if openStreams == 0, let context { startIdleTimer(idleTimeout, context) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        idleTimer?.cancel()
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent {
            end(after: openStreams == 0 ? .zero : Self.grace, context)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.fireErrorCaught(error)
        // An error of one stream resets that stream. Any other has been answered with GOAWAY, and
        // whoever caused it must not keep the connection.
        if error is NIOHTTP2Errors.StreamError { return }
        context.close(promise: nil)
    }

    private func startIdleTimer(_ time: TimeAmount, _ context: ChannelHandlerContext) {
        idleTimer?.cancel()
        idleTimer = context.eventLoop.assumeIsolated().scheduleTask(in: time) {
            self.end(after: .zero, context)
        }
    }

    private func end(after time: TimeAmount, _ context: ChannelHandlerContext) {
        let frame = HTTP2Frame(
            streamID: .rootStream,
            payload: .goAway(lastStreamID: .maxID, errorCode: .noError, opaqueData: nil))
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
        context.eventLoop.assumeIsolated().scheduleTask(in: time) { context.close(promise: nil) }
    }
}
