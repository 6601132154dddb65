import NIOCore
import NIOHTTP2

/// Tells the streams of an HTTP/2 connection that the peer has ended its side: no further request,
/// and no part of one, will come.
struct HTTP2InputClosed: Sendable {}

/// Ends an HTTP/2 connection that was idle for too long, that its peer has ended, or when the
/// server stops; and refuses the requests beyond the limit.
// Sound: NIO calls handler and stream delegate on the connection's event loop only.
final class HTTP2ConnectionEnd: ChannelInboundHandler, NIOHTTP2StreamDelegate, @unchecked Sendable {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    private let firstRequestTimeout: TimeAmount
    let settings: ConnectionSettings
    private var context: ChannelHandlerContext?
    private var openStreams: [HTTP2StreamID: any Channel] = [:]
    /// The newest request, which may have been processed.
    private(set) var newestStream = HTTP2StreamID.rootStream
    private var endsWithRequests = false
    private var idleTimer: Scheduled<Void>?

    init(firstRequestTimeout: TimeAmount, _ settings: ConnectionSettings) {
        (self.firstRequestTimeout, self.settings) = (firstRequestTimeout, settings)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        startIdleTimer(firstRequestTimeout, context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        idleTimer?.cancel()
        self.context = nil
    }

    /// Whether the next stream is refused.
    var isFull: Bool { openStreams.count >= settings.concurrentRequestsMax }

    func streamCreated(_ id: HTTP2StreamID, channel: any Channel) {
        newestStream = max(newestStream, id)
        if isFull { return send(.rstStream(.refusedStream), id) }
        // NIO has reported as closed already what its handlers closed with the first frame.
        guard channel.isActive else { return }
        openStreams[id] = channel
        idleTimer?.cancel()
        idleTimer = nil
    }

    func streamClosed(_ id: HTTP2StreamID, channel: any Channel) {
        openStreams[id] = nil
        guard openStreams.isEmpty, let context else { return }
        startIdleTimer(endsWithRequests ? .zero : TimeAmount(settings.idleTimeout), context)
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
            endsWithRequests = true
            // The gateway cuts connections that take longer than it waits. NIO refuses the requests
            // that cross the first GOAWAY (RFC 9113 section 6.8).
            if openStreams.isEmpty { end(context) } else { sendGoAway(upTo: .maxID) }
        case ChannelEvent.inputClosed:
            endsWithRequests = true
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
            self.end(context)
        }
    }

    /// Closes with a GOAWAY that names the newest request: the client knows that later ones were not
    /// processed, and repeats them elsewhere (RFC 9113 section 6.8).
    private func end(_ context: ChannelHandlerContext) {
        sendGoAway(upTo: newestStream)
        context.close(promise: nil)
    }

    private func sendGoAway(upTo last: HTTP2StreamID) {
        send(.goAway(lastStreamID: last, errorCode: .noError, opaqueData: nil), .rootStream)
    }

    private func send(_ payload: HTTP2Frame.FramePayload, _ stream: HTTP2StreamID) {
        let frame = HTTP2Frame(streamID: stream, payload: payload)
        context?.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }
}
