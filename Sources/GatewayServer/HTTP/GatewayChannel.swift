import GatewayTLS
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOHTTPTypesHTTP2
import NIOTLS

/// Bounds of a connection.
struct ConnectionSettings: Sendable {
    /// All header fields of a request together, in bytes.
    var headerBytesMax = 16 * 1024
    /// Header fields of a request.
    var headerFieldsMax = 100
    /// From the end of the handshake to the first complete request head.
    var firstRequestTimeout = TimeAmount.seconds(15)
    /// From a request's head to the end of its body.
    var requestTimeout = TimeAmount.seconds(30)
    /// Between two requests of a connection.
    var idleTimeout = Duration.seconds(75)
    /// Requests of one HTTP/2 connection under way at a time.
    var concurrentRequestsMax = 100
    /// Bytes one HTTP/2 stream may send before it is read.
    var windowBytes = 256 * 1024
}

/// One accepted connection: TLS, then HTTP/1.1 or HTTP/2 as ALPN says. Requests go to Hummingbird,
/// event streams to their event loop's shard.
struct GatewayChannel: ServerChildChannel, HTTPChannelHandler {
    /// What a connection's first request turned it into.
    enum Taken: Sendable {
        /// An event stream; its event loop owns it from here.
        case stream
        /// Requests and answers.
        case http(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>)
    }

    /// A connection, or one stream of an HTTP/2 connection, and what becomes of it.
    struct Exchange: Sendable {
        let channel: any Channel
        let taken: EventLoopFuture<Taken>
    }

    enum Negotiated: Sendable {
        case http1(Exchange)
        case http2(NIOHTTP2Handler.AsyncStreamMultiplexer<Exchange>)
    }

    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let negotiated: EventLoopFuture<Negotiated>
    }

    let responder: HTTPChannelHandler.Responder
    let identity: TLSIdentity
    let tlsSettings: TLSServerSettings
    let settings: ConnectionSettings
    let admission: StreamAdmission

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            let tls = TLSServerHandler(identity: identity, settings: tlsSettings)
            try pipeline.addHandler(tls)
            let bound = NIOLoopBound(tls, eventLoop: channel.eventLoop)
            let negotiation = NIOTypedApplicationProtocolNegotiationHandler<Negotiated> { result in
                channel.eventLoop.makeCompletedFuture {
                    switch result {
                    case .negotiated("h2"):
                        return .http2(try configureHTTP2(channel, bound.value, logger))
                    case .negotiated, .fallback:
                        return .http1(try configureHTTP1(channel, bound.value, logger))
                    }
                }
            }
            try pipeline.addHandler(negotiation)
            return Value(
                channel: channel, negotiated: negotiation.protocolNegotiationResult)
        }
    }

    private func configureHTTP1(
        _ channel: any Channel, _ tls: TLSServerHandler, _ logger: Logger
    ) throws -> Exchange {
        let pipeline = channel.pipeline.syncOperations
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = settings.headerBytesMax
        limits.maxHeaderListSize = settings.headerBytesMax
        limits.maxHeaderFieldCount = settings.headerFieldsMax
        try pipeline.configureHTTPServerPipeline(
            withPipeliningAssistance: false, withErrorHandling: false,
            withOutboundHeaderValidation: false, withEncoderConfiguration: .init(),
            withDecoderLimitConfiguration: limits)
        try pipeline.addHandler(HostCheck())
        try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: true))
        return try addGate(channel, tls, isHTTP2: false, logger)
    }

    private func configureHTTP2(
        _ channel: any Channel, _ tls: TLSServerHandler, _ logger: Logger
    ) throws -> NIOHTTP2Handler.AsyncStreamMultiplexer<Exchange> {
        var configuration = NIOHTTP2Handler.Configuration()
        configuration.connection.initialSettings = [
            HTTP2Setting(
                parameter: .maxConcurrentStreams, value: settings.concurrentRequestsMax),
            HTTP2Setting(parameter: .maxHeaderListSize, value: settings.headerBytesMax),
            HTTP2Setting(parameter: .initialWindowSize, value: settings.windowBytes),
        ]
        configuration.stream.targetWindowSize = settings.windowBytes
        let bound = NIOLoopBound(tls, eventLoop: channel.eventLoop)
        let end = HTTP2ConnectionEnd(
            firstRequestTimeout: settings.firstRequestTimeout,
            idleTimeout: TimeAmount(settings.idleTimeout))
        try channel.pipeline.syncOperations.addHandler(HTTP2ProtocolErrorEnd())
        let multiplexer = try channel.pipeline.syncOperations.configureAsyncHTTP2Pipeline(
            mode: .server, streamDelegate: end, configuration: configuration
        ) { stream in
            stream.eventLoop.makeCompletedFuture {
                try stream.pipeline.syncOperations.addHandler(HTTP2FramePayloadToHTTPServerCodec())
                return try addGate(stream, bound.value, isHTTP2: true, logger)
            }
        }
        try channel.pipeline.syncOperations.addHandler(end)
        return multiplexer
    }

    private func addGate(
        _ channel: any Channel, _ tls: TLSServerHandler, isHTTP2: Bool, _ logger: Logger
    ) throws -> Exchange {
        let gate = StreamGate(
            tls: tls, isHTTP2: isHTTP2, settings: settings, admission: admission, logger: logger,
            taken: channel.eventLoop.makePromise())
        try channel.pipeline.syncOperations.addHandler(gate)
        return Exchange(channel: channel, taken: gate.taken.futureResult)
    }

    func handle(value: Value, logger: Logger) async {
        guard let negotiated = try? await value.negotiated.get() else { return }
        switch negotiated {
        case .http1(let exchange):
            await handle(exchange, logger)
        case .http2(let connection):
            try? await withThrowingDiscardingTaskGroup { group in
                for try await exchange in connection.inbound {
                    group.addTask { await handle(exchange, logger) }
                }
            }
        }
    }

    private func handle(_ exchange: Exchange, _ logger: Logger) async {
        // The task of a stream ends here: from now on only its event loop knows it.
        guard case .http(let channel) = try? await exchange.taken.get() else { return }
        await handleHTTP(asyncChannel: channel, logger: logger)
    }
}
