import Glibc
import NIOCore

/// Resets its connection. It is placed before TLS, which would send a close notification.
final class ConnectionCut: ChannelOutboundHandler {
    typealias OutboundIn = Any

    private var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    /// Closes the socket at once; the kernel discards unsent data and sends RST.
    func cut() {
        guard let context else { return }
        let abort = linger(l_onoff: 1, l_linger: 0)
        _ = (context.channel as? any SocketOptionProvider)?.setSoLinger(abort)
        context.close(promise: nil)
    }
}

/// Writes GOAWAY without NIO's HTTP/2 handler. That handler would treat frames which the client
/// sent before receiving the GOAWAY as a protocol violation, and end the connection while streams
/// before the last one still wait for their responses.
final class FrameBypass: ChannelOutboundHandler {
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    private static let goAwayType: UInt8 = 7
    private var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    /// Writes GOAWAY with NO_ERROR (RFC 9113 section 6.8).
    func goAway(lastStream: Int, data: String) {
        guard let context else { return }
        let length = UInt32(clamping: 8 + data.utf8.count)
        var frame = context.channel.allocator.buffer(capacity: 9 + Int(length))
        // The length has three bytes, the type is the fourth; flags and stream are zero.
        frame.writeInteger(length << 8 | UInt32(Self.goAwayType))
        frame.writeRepeatingByte(0, count: 5)
        frame.writeInteger(UInt32(clamping: lastStream))
        frame.writeInteger(0 as UInt32)
        frame.writeString(data)
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(frame)), promise: nil)
    }
}
