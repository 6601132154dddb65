import NIOCore
import NIOHTTP1

/// Refuses HTTP/1.1 requests that name no host, or two (RFC 9112 section 3.2): the typed request
/// that follows holds one, and two servers could disagree on which.
final class HostCheck: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private var isBroken = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isBroken else { return }
        if case .head(let head) = unwrapInboundIn(data), head.headers["host"].count != 1 {
            isBroken = true
            context.fireErrorCaught(HTTPParserError.invalidHeaderToken)
        } else {
            context.fireChannelRead(data)
        }
    }
}
