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
import NIOPosix

/// Bounds of a connection.
struct ConnectionSettings: Sendable {
    /// All header fields of a request together, in bytes.
    var headerBytesMax = 16 * 1024
    /// Header fields of a request.
    var headerFieldsMax = 100
    /// From a request's head to the end of its body.
    var requestTimeout = TimeAmount.seconds(30)
    /// Between two requests of a connection.
    var idleTimeout = Duration.seconds(75)
    /// Requests of one HTTP/2 connection under way at a time.
    var concurrentRequestsMax = 100
    /// Bytes one HTTP/2 stream may send before it is read.
    var windowBytes = 256 * 1024
}

/// One connection that came for more than an event stream: HTTP/1.1 or HTTP/2, as ALPN says. Its
/// requests go to Hummingbird, event streams to their event loop's shard.
struct GatewayChannel: Sendable {
    /// What a connection's first request turned it into.
    enum Taken: Sendable {
        /// An event stream; its event loop owns it from here.
        case stream
        /// Requests and answers.
        case http(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>)
    }

    /// A connection of HTTP/1.1, or one stream of HTTP/2, and what becomes of it.
    struct Conversation: Sendable {
        let channel: any Channel
        let taken: EventLoopFuture<Taken>
    }

    /// A connection that needs a task.
    enum Exchange: Sendable {
        case http1(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>)
        case http2(NIOHTTP2Handler.AsyncStreamMultiplexer<Conversation>)
    }

    let requests: RequestLoop
    let tlsSettings: TLSServerSettings
    let settings: ConnectionSettings
    let admission: StreamAdmission
    /// Where connections that need a task are handed to the listener.
    let exchanges: AsyncStream<Exchange>.Continuation
    /// Those that are open.
    let open: OpenChannels
    let logger: Logger

    /// Makes a connection a channel of an event loop, and hands it to the listener.
    func start(_ arrived: Arrived, on loop: any EventLoop) {
        let bootstrap = ClientBootstrap(group: loop)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try configure(channel, arrived) }
            }
        // What goes wrong here ends the connection; nobody else has to know.
        _ = bootstrap.withConnectedSocket(arrived.connection.takeSocket())
    }

    private func configure(_ channel: any Channel, _ arrived: Arrived) throws {
        guard open.add(channel) else { throw ChannelError.alreadyClosed }
        let tls = TLSServerHandler(arrived, settings: tlsSettings)
        try channel.pipeline.syncOperations.addHandler(tls)
        guard tls.negotiatedProtocol != "h2" else {
            exchanges.yield(.http2(try configureHTTP2(channel, tls)))
            return
        }
        // What has come is no whole request perhaps: it gets no more time for the rest.
        let conversation = try configureHTTP1(channel, tls, arrived.requestDue)
        conversation.taken.whenSuccess { [exchanges] taken in
            if case .http(let channel) = taken { exchanges.yield(.http1(channel)) }
        }
    }

    private func configureHTTP1(
        _ channel: any Channel, _ tls: TLSServerHandler, _ requestDue: NIODeadline
    ) throws -> Conversation {
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
        return try addGate(channel, tls, isHTTP2: false, requestDue: requestDue)
    }

    private func configureHTTP2(
        _ channel: any Channel, _ tls: TLSServerHandler
    ) throws -> NIOHTTP2Handler.AsyncStreamMultiplexer<Conversation> {
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
            firstRequestTimeout: tlsSettings.firstRequestTimeout,
            idleTimeout: TimeAmount(settings.idleTimeout))
        try channel.pipeline.syncOperations.addHandlers([
            HTTP2LateResets(isOver: { end.isOver($0) }), HTTP2ProtocolErrorEnd(),
        ])
        let multiplexer = try channel.pipeline.syncOperations.configureAsyncHTTP2Pipeline(
            mode: .server, streamDelegate: end, configuration: configuration
        ) { stream in
            stream.eventLoop.makeCompletedFuture {
                try stream.pipeline.syncOperations.addHandler(HTTP2FramePayloadToHTTPServerCodec())
                return try addGate(
                    stream, bound.value, isHTTP2: true,
                    requestDue: .now() + tlsSettings.firstRequestTimeout)
            }
        }
        try channel.pipeline.syncOperations.addHandler(end)
        return multiplexer
    }

    private func addGate(
        _ channel: any Channel, _ tls: TLSServerHandler, isHTTP2: Bool, requestDue: NIODeadline
    ) throws -> Conversation {
        let gate = StreamGate(
            tls: tls, isHTTP2: isHTTP2, requestDue: requestDue, settings: settings,
            admission: admission, logger: logger, taken: channel.eventLoop.makePromise())
        try channel.pipeline.syncOperations.addHandler(gate)
        return Conversation(channel: channel, taken: gate.taken.futureResult)
    }

    /// Serves a connection to its end.
    func handle(_ exchange: Exchange) async {
        switch exchange {
        case .http1(let channel):
            await requests.run(channel)
        case .http2(let connection):
            try? await withThrowingDiscardingTaskGroup { group in
                for try await conversation in connection.inbound {
                    group.addTask {
                        // The task of a stream ends here: only its event loop knows it.
                        if case .http(let channel)? = try? await conversation.taken.get() {
                            await requests.run(channel)
                        }
                    }
                }
            }
        }
    }
}
