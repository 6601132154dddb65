import HummingbirdCore
import Logging
import NIOCore
import NIOHTTPTypes

/// Answers the requests of a connection, or of an HTTP/2 stream, one after another: Hummingbird's
/// loop, without its listener.
struct RequestLoop: HTTPChannelHandler {
    typealias Parts = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    /// A channel as Hummingbird's own listener would hand it on.
    struct Value: ServerChildChannelValue {
        let parts: Parts
        var channel: any Channel { parts.channel }
    }

    /// Answers one request.
    let responder: HTTPChannelHandler.Responder
    let logger: Logger

    /// Returns when the channel is closed.
    func run(_ parts: Parts) async {
        await handleHTTP(asyncChannel: parts, logger: logger)
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            Value(parts: try NIOAsyncChannel(wrappingChannelSynchronously: channel))
        }
    }

    func handle(value: Value, logger: Logger) async {
        await handleHTTP(asyncChannel: value.parts, logger: logger)
    }
}
