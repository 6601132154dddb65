import GatewayCore
import GatewayOperations
import GatewayTLS
import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOHTTPTypesHTTP1
import NIOHTTPTypesHTTP2
import NIOPosix
import WidgetModel

package struct ConnectionSettings: Sendable {
    /// The maximum size of all header fields of a request together, in bytes.
    package var headerBytesMax = 16 * 1024
    /// The size of the header fields of an HTTP/2 request, in bytes, above which they are not
    /// decoded. The connection ends then, because later requests could refer to them. Peers are
    /// told this limit; a lower one may be enforced (RFC 9113 section 6.5.2).
    package var headerBytesDecodedMax = 64 * 1024
    /// The maximum number of header fields of a request.
    package var headerFieldsMax = 100
    /// The time in which no byte of a body has to arrive, and that one which is slower than the rate
    /// uses up. A phone throttled to 64 kbit/s sends twice the rate.
    package var bodyPause = TimeAmount.seconds(30)
    package var bodyBytesPerSecond = 4 * 1024
    /// The time from a request's head to the end of its body.
    package var bodyTimeout = TimeAmount.minutes(5)
    /// The maximum length of a request's rest that is read after its response.
    package var restBytesMax = 64 * 1024
    /// The longest time to drop a longer rest before its connection ends: a reset would destroy a
    /// response that the client, still sending, has not read.
    package var lingerTimeout = TimeAmount.seconds(30)
    /// The time from one piece of a response that the peer accepts to the next.
    package var answerTimeout = TimeAmount.seconds(30)
    /// The time between two requests of a connection.
    package var idleTimeout = Duration.seconds(75)
    /// The maximum number of concurrent requests of one HTTP/2 connection.
    package var concurrentRequestsMax = 100
    /// The maximum number of frames of HTTP/2 that only cost work, of each kind, in so many seconds.
    package static let idleFramesMax = 1_000
    package static let (resetSeconds, controlSeconds) = (Int64(3), Int64(10))
    /// The bytes that an HTTP/2 stream may send before they are read; the protocol's default. A
    /// body that waits for the budget of request bytes is not read, and takes less than three times
    /// this. Once its route has reserved memory, its window grows by as much (`BodyDemand.permit`):
    /// so the budget bounds the memory.
    static let windowBytes = 65_535
    /// The same for all streams of a connection together. It bounds no memory: NIO renews it as bytes
    /// arrive, so that streams that are not read hold up no others.
    var connectionWindowBytes = 8 * 1024 * 1024
}

/// Creates channels of HTTP/1.1 or HTTP/2 from connections, as ALPN determines. Their requests go
/// to the routes of the port, event streams to their event loop's shard.
package struct HTTPPipeline: Sendable {
    let responder: Responder
    let tlsSettings: TLSServerSettings
    var settings = ConnectionSettings()
    /// The proxies that state the addresses of their clients; `nil` for none.
    var proxies: TrustedProxies?
    /// `nil` on a port without event streams of a shard.
    var admission: StreamAdmission?
    /// The event loops, each serving some of the connections; those of the shards, if there are
    /// any.
    let loops: [any EventLoop]
    let open = OpenChannels()
    /// Closes connections to make room for newer ones; `nil` for no such limit.
    var newest: NewestConnections?
    /// Called when a response is abandoned because its peer does not read it.
    var onUnreadAnswer: @Sendable () -> Void = {}

    /// The settings of the port's connections.
    var arrivalSettings: TLSServerSettings {
        var settings = tlsSettings
        if let proxies { settings.proxyProtocol = { proxies.proxyProtocol(of: $0) } }
        return settings
    }

    /// Returns the address that a request is counted for; `nil` where addresses are not counted.
    ///
    /// - Parameter forwarded: The request's `Forwarded` fields, which count only from a proxy that
    ///   is trusted to set them.
    /// - Throws: 400 if such a proxy sends fields that RFC 7239 does not allow.
    func source(of peer: TLSPeer, forwarded: [String]) throws(ProblemDetails) -> SourceAddress? {
        guard peer.proxyProtocol == .forwarded, let proxies, !forwarded.isEmpty else {
            return peer.address
        }
        do throws(ForwardedField.Malformed) {
            let client = try ForwardedField.client(forwarded) { proxies.contains($0) }
            return client.map { SourceAddress(ip: $0.bytes) } ?? peer.address
        } catch {
            throw Problem.malformed(
                "The header field Forwarded must be as in RFC 7239, such as `for=192.0.2.1` or "
                    + "`for=\"[2001:db8::1]:443\"`.")
        }
    }

    /// The maximum number of bytes that one read of a connection returns, which limits what TLS
    /// decrypts at once.
    package static let readBytesMax = 16 * 1024

    private static let allocator = AdaptiveRecvByteBufferAllocator(
        minimum: 1_024, initial: 2_048, maximum: readBytesMax)

    /// Turns a connection into a channel of an event loop.
    func start(_ arrived: Arrived, on loop: any EventLoop) {
        let bootstrap = ClientBootstrap(group: loop)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(.recvAllocator, value: Self.allocator)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try configure(channel, arrived) }
            }
        // An error here ends the connection and needs no further handling.
        _ = bootstrap.withConnectedSocket(arrived.connection.takeSocket())
    }

    /// Accepts connections without TLS.
    func acceptPlain(at address: Address) async throws -> any Channel {
        try await ServerBootstrap(group: loops[0])
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.recvAllocator, value: Self.allocator)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard open.add(channel) else { throw ChannelError.alreadyClosed }
                    try configureHTTP1(channel, nil, .now() + tlsSettings.firstRequestTimeout)
                }
            }
            .bind(host: address.host, port: address.port).get()
    }

    private func configure(_ channel: any Channel, _ arrived: Arrived) throws {
        guard open.add(channel) else { throw ChannelError.alreadyClosed }
        let tls = TLSServerHandler(arrived, settings: tlsSettings)
        try channel.pipeline.syncOperations.addHandler(tls)
        if tls.negotiatedProtocol == "h2" {
            try configureHTTP2(channel, tls)
        } else {
            // The received bytes may not be a complete request: the rest gets no additional time.
            try configureHTTP1(channel, tls, arrived.requestDue)
        }
    }

    private func configureHTTP1(
        _ channel: any Channel, _ tls: TLSServerHandler?, _ requestDue: NIODeadline
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = settings.headerBytesMax
        limits.maxHeaderListSize = settings.headerBytesMax
        limits.maxHeaderFieldCount = settings.headerFieldsMax
        let decoder = HTTPRequestDecoder(
            leftOverBytesStrategy: .dropBytes, limitConfiguration: limits)
        try pipeline.addHandler(ByteToMessageHandler(decoder))
        try addHandler(
            channel, tls, isHTTP2: false, requestDue: requestDue, progress: ConnectionProgress())
    }

    private func configureHTTP2(
        _ channel: any Channel, _ tls: TLSServerHandler
    ) throws {
        // Behind a proxy, many people's requests share a connection: what ends it must cost more than
        // requests do, which the rates limit. NIO allocates memory for each count.
        var configuration = NIOHTTP2Handler.Configuration()
        configuration.connection.initialSettings = [
            // `HTTP2ServerFrames` lowers it to what the client may do.
            HTTP2Setting(
                parameter: .maxConcurrentStreams, value: 10 * settings.concurrentRequestsMax),
            HTTP2Setting(parameter: .maxHeaderListSize, value: settings.headerBytesDecodedMax),
        ]
        configuration.connection.targetWindowSize = settings.connectionWindowBytes
        configuration.stream.targetWindowSize = ConnectionSettings.windowBytes
        // Frames of streams that we reset may be under way for a round trip.
        configuration.connection.maximumRecentlyResetStreams = 1_000
        // They cost no more than those of one byte.
        configuration.connection.maximumSequentialEmptyDataFrames =
            ConnectionSettings.idleFramesMax
        // The stream errors of a lifetime; the rate below limits them.
        configuration.connection.maximumConnectionGlitches = .max
        // PING, SETTINGS and PRIORITY: some clients send one of them with each request.
        configuration.connection.controlFrameRateLimit.maximumCount =
            ConnectionSettings.idleFramesMax
        configuration.connection.controlFrameRateLimit.windowLength = .seconds(
            ConnectionSettings.controlSeconds)
        // All streams of a connection may be opened and reset three times a second.
        configuration.stream.streamResetFrameRateLimit.maximumCount =
            ConnectionSettings.idleFramesMax
        configuration.stream.streamResetFrameRateLimit.windowLength = .seconds(
            ConnectionSettings.resetSeconds)
        configuration.stream.streamErrorRateLimit.maximumCount = ConnectionSettings.idleFramesMax
        configuration.stream.streamErrorRateLimit.windowLength = .seconds(
            ConnectionSettings.resetSeconds)
        let bound = NIOLoopBound((tls, ConnectionProgress()), eventLoop: channel.eventLoop)
        let end = HTTP2ConnectionEnd(
            firstRequestTimeout: tlsSettings.firstRequestTimeout, settings)
        try channel.pipeline.syncOperations.addHandlers([
            HTTP2ClientFrames(isOver: { end.isOver($0) }),
            HTTP2ServerFrames(end, report: { tls.report($0, $1) }),
        ])
        _ = try channel.pipeline.syncOperations.configureHTTP2Pipeline(
            mode: .server, connectionConfiguration: configuration.connection,
            streamConfiguration: configuration.stream, streamDelegate: end
        ) { stream in
            stream.eventLoop.makeCompletedFuture {
                // Without handlers nothing is done with the request, which is refused.
                if end.isFull { return }
                try stream.pipeline.syncOperations.addHandlers([
                    HTTP2FramePayloadToHTTPServerCodec(), HTTPToHTTP1ServerCodec(),
                ])
                let (tls, progress) = bound.value
                try addHandler(
                    stream, tls, isHTTP2: true,
                    requestDue: .now() + tlsSettings.firstRequestTimeout, progress: progress)
            }
        }
        try channel.pipeline.syncOperations.addHandler(end)
    }

    private func addHandler(
        _ channel: any Channel, _ tls: TLSServerHandler?, isHTTP2: Bool, requestDue: NIODeadline,
        progress: ConnectionProgress
    ) throws {
        try channel.pipeline.syncOperations.addHandler(
            HTTPConnectionHandler(
                self, tls: tls, isHTTP2: isHTTP2, requestDue: requestDue, progress: progress))
    }
}
