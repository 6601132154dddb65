import GatewayTLS
import NIOCore
import NIOTLS

/// Stands behind TLS until it is known what a connection is for: HTTP/2, an event stream, which
/// leaves at once, or requests, for which HTTP/1.1's handlers come into its place.
final class ConnectionStart: ChannelInboundHandler, RemovableChannelHandler, DeadlineOwner {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let tls: TLSServerHandler
    private let setup: GatewayChannel
    private var context: ChannelHandlerContext?
    private var deadline: DeadlineQueue.Deadline?
    private var requestDue = NIODeadline.distantFuture

    init(tls: TLSServerHandler, setup: GatewayChannel) {
        self.tls = tls
        self.setup = setup
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        deadline?.cancel()
        self.context = nil
    }

    /// No request came.
    func deadlinePassed() {
        context?.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSUserEvent.handshakeCompleted(negotiatedProtocol: "h2"):
            begin(context) { try setup.startHTTP2(context.channel, tls) }
        case is TLSUserEvent:
            requestDue = .now() + setup.settings.firstRequestTimeout
            deadline = DeadlineQueue.set(
                setup.settings.firstRequestTimeout, context.eventLoop, for: self)
        case is ChannelShouldQuiesceEvent, ChannelEvent.inputClosed:
            context.close(promise: nil)
        default:
            context.fireUserInboundEventTriggered(event)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if let request = FirstRequest.read(unwrapInboundIn(data), setup.settings),
            setup.admission.openNow(request, tls, context.eventLoop)
        {
            context.close(promise: nil)
            return
        }
        begin(context) {
            // What has come is no whole request perhaps: it gets no more time for the rest.
            try setup.startHTTP1(context.channel, tls, requestDue: requestDue)
            // To the handlers that came behind this one.
            context.fireChannelRead(data)
        }
    }

    private func begin(_ context: ChannelHandlerContext, _ start: () throws -> Void) {
        do {
            try start()
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        } catch {
            context.close(promise: nil)
        }
    }
}
