import GatewayTLS
import NIOCore
import NIOHTTP1
import NIOHTTP2
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
    /// From one piece of an answer that the peer takes to the next.
    var answerTimeout = TimeAmount.seconds(30)
    /// Between two requests of a connection.
    var idleTimeout = Duration.seconds(75)
    /// Requests of one HTTP/2 connection under way at a time.
    var concurrentRequestsMax = 100
    /// Bytes one HTTP/2 stream may send before it is read.
    var windowBytes = 256 * 1024
}

/// One connection that came for more than an event stream: HTTP/1.1 or HTTP/2, as ALPN says. Its
/// requests go to the routes, event streams to their event loop's shard.
struct GatewayChannel: Sendable {
    let responder: Responder
    let tlsSettings: TLSServerSettings
    let settings: ConnectionSettings
    let admission: StreamAdmission
    /// Those that are open.
    let open: OpenChannels
    /// Called when an answer is given up because its peer does not read it.
    let onUnreadAnswer: @Sendable () -> Void

    /// The most that one read of a connection brings: what TLS makes of it in one go is bounded by it.
    static let readBytesMax = 16 * 1024

    /// Makes a connection a channel of an event loop.
    func start(_ arrived: Arrived, on loop: any EventLoop) {
        let bootstrap = ClientBootstrap(group: loop)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(
                    minimum: 1_024, initial: 2_048, maximum: Self.readBytesMax)
            )
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
        if tls.negotiatedProtocol == "h2" {
            try configureHTTP2(channel, tls)
        } else {
            // What has come is no whole request perhaps: it gets no more time for the rest.
            try configureHTTP1(channel, tls, arrived.requestDue)
        }
    }

    private func configureHTTP1(
        _ channel: any Channel, _ tls: TLSServerHandler, _ requestDue: NIODeadline
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = settings.headerBytesMax
        limits.maxHeaderListSize = settings.headerBytesMax
        limits.maxHeaderFieldCount = settings.headerFieldsMax
        let decoder = HTTPRequestDecoder(
            leftOverBytesStrategy: .dropBytes, limitConfiguration: limits)
        try pipeline.addHandler(ByteToMessageHandler(decoder))
        try addGate(
            channel, tls, isHTTP2: false, requestDue: requestDue, progress: AnswerProgress())
    }

    private func configureHTTP2(
        _ channel: any Channel, _ tls: TLSServerHandler
    ) throws {
        var configuration = NIOHTTP2Handler.Configuration()
        configuration.connection.initialSettings = [
            HTTP2Setting(
                parameter: .maxConcurrentStreams, value: settings.concurrentRequestsMax),
            HTTP2Setting(parameter: .maxHeaderListSize, value: settings.headerBytesMax),
            HTTP2Setting(parameter: .initialWindowSize, value: settings.windowBytes),
        ]
        configuration.stream.targetWindowSize = settings.windowBytes
        let bound = NIOLoopBound((tls, AnswerProgress()), eventLoop: channel.eventLoop)
        let end = HTTP2ConnectionEnd(
            firstRequestTimeout: tlsSettings.firstRequestTimeout,
            idleTimeout: TimeAmount(settings.idleTimeout))
        try channel.pipeline.syncOperations.addHandlers([
            HTTP2LateResets(isOver: { end.isOver($0) }), HTTP2ProtocolErrorEnd(),
        ])
        _ = try channel.pipeline.syncOperations.configureHTTP2Pipeline(
            mode: .server, connectionConfiguration: configuration.connection,
            streamConfiguration: configuration.stream, streamDelegate: end
        ) { stream in
            stream.eventLoop.makeCompletedFuture {
                try stream.pipeline.syncOperations.addHandlers([
                    HTTP2FramePayloadToHTTPServerCodec(), HTTPToHTTP1ServerCodec(),
                ])
                let (tls, progress) = bound.value
                try addGate(
                    stream, tls, isHTTP2: true,
                    requestDue: .now() + tlsSettings.firstRequestTimeout, progress: progress)
            }
        }
        try channel.pipeline.syncOperations.addHandler(end)
    }

    private func addGate(
        _ channel: any Channel, _ tls: TLSServerHandler, isHTTP2: Bool, requestDue: NIODeadline,
        progress: AnswerProgress
    ) throws {
        try channel.pipeline.syncOperations.addHandler(
            StreamGate(
                tls: tls, isHTTP2: isHTTP2, requestDue: requestDue, settings: settings,
                admission: admission, open: open, progress: progress,
                onUnreadAnswer: onUnreadAnswer, responder: responder))
    }
}
