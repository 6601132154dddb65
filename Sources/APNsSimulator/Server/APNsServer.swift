import GatewayTLS
import Glibc
import NIOCore
import NIOHTTP2
import NIOPosix
import Synchronization

/// A listening push service: ``SimulatedAPNs`` with HTTP/2 and TLS.
package final class APNsServer: Sendable {
    /// The address and the TLS settings of the server.
    package struct Settings: Sendable {
        /// The host name or address to listen on.
        package var host = "127.0.0.1"
        /// The port; 0 for a free one.
        package var port = 0
        /// The certificate chain, leaf first.
        package var certificate: PEMSource
        /// The private key of the leaf certificate.
        package var key: PEMSource
        /// The CA of client certificates that replace provider tokens; `nil` requests none. The
        /// user id in such a certificate's subject is the app that it may push to.
        package var clientCA: PEMSource?
        /// The number of event loops.
        package var threads = 1
        package var connectionsMax = 10_000
        package var clock: @Sendable () -> SimulatedAPNs.Moment = APNsServer.time
        /// Called with each decision about a request, on an event loop.
        package var onDecision: (@Sendable (SimulatedAPNs.Decision, SimulatedAPNs.Moment) -> Void)?

        /// Creates settings with the defaults above.
        package init(certificate: PEMSource, key: PEMSource) {
            self.certificate = certificate
            self.key = key
        }
    }

    /// The port that the server listens on.
    package let port: Int
    private let service: APNsService
    private let arrivals: TLSAcceptor
    private let group: MultiThreadedEventLoopGroup

    /// Starts to listen. Throws `TLSError` for the certificate and key; `SocketAddressError` or
    /// `IOError` for the address.
    package init(_ terms: SimulatedAPNs.Terms, _ settings: Settings) throws {
        var tls = TLSContextSettings()
        tls.applicationProtocols = ["h2"]
        if let clientCA = settings.clientCA {
            tls.clientCertificates = .optional(authorities: clientCA)
        }
        let context = try TLSContext(
            certificateChain: settings.certificate, privateKey: settings.key, settings: tls)
        let service = APNsService(terms, settings)
        let socket = try ListeningSocket(host: settings.host, port: settings.port)
        try socket.listen()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: max(1, settings.threads))
        let tlsSettings = TLSServerSettings()
        arrivals = try TLSAcceptor(
            socket, identity: TLSIdentity(context), settings: tlsSettings,
            limit: ConnectionLimit(settings.connectionsMax), threads: 1, waits: { _ in false }
        ) {
            APNsReception { service.start($0, tlsSettings, on: group.next()) }
        }
        (port, self.service, self.group) = (socket.port, service, group)
    }

    /// Returns the actual time.
    package static let time: @Sendable () -> SimulatedAPNs.Moment = {
        var wall = timespec()
        clock_gettime(CLOCK_REALTIME, &wall)
        return SimulatedAPNs.Moment(
            now: Int64(NIODeadline.now().uptimeNanoseconds / 1_000_000),
            wall: Int64(wall.tv_sec) * 1_000 + Int64(wall.tv_nsec) / 1_000_000)
    }

    /// The record of all events so far.
    package var record: PushRecord { service.state.withLock { $0.record } }

    /// Sets the behavior for the next pushes to a device token or channel; see
    /// ``SimulatedAPNs/script(_:_:)``.
    package func script(_ token: String, _ behaviours: [PushBehaviour]) {
        service.state.withLock { $0.script(token, behaviours) }
    }

    /// Ends every connection by GOAWAY.
    package func goAway(reason: String) {
        service.goAway(reason: reason)
    }

    /// Closes every connection and stops listening; returns when all have ended.
    package func stop() async {
        arrivals.stop()
        service.closeAll()
        await arrivals.ended()
        try? await group.shutdownGracefully()
    }
}

/// The state shared by the connections of a server.
final class APNsService: Sendable {
    let state: Mutex<SimulatedAPNs>
    let settings: APNsServer.Settings
    let environment: SimulatedEnvironment
    let bodyBytesMax: Int
    private let handlers = Mutex<[Int: NIOLoopBound<APNsConnectionHandler>]>([:])

    init(_ terms: SimulatedAPNs.Terms, _ settings: APNsServer.Settings) {
        state = Mutex(SimulatedAPNs(terms))
        self.settings = settings
        environment = terms.environment
        bodyBytesMax = max(terms.rules.payloadBytesMax, terms.rules.longPayloadBytesMax)
    }

    /// Creates a channel for a connection.
    func start(_ arrived: Arrived, _ tls: TLSServerSettings, on loop: any EventLoop) {
        _ = ClientBootstrap(group: loop)
            .channelInitializer { [self] channel in
                channel.eventLoop.makeCompletedFuture { try configure(channel, arrived, tls) }
            }
            .withConnectedSocket(arrived.connection.takeSocket())
    }

    private func configure(
        _ channel: any Channel, _ arrived: Arrived, _ tls: TLSServerSettings
    ) throws {
        // Without ALPN a client uses HTTP/1.1, which this service does not support.
        guard arrived.connection.negotiatedProtocol == "h2" else {
            throw ChannelError.alreadyClosed
        }
        let app = arrived.connection.peerCertificateUserID
        let opened = state.withLock {
            $0.opened(
                certificateTopics: app.map(PushRules.topics(ofApp:)), at: settings.clock())
        }
        var connection = NIOHTTP2Handler.ConnectionConfiguration()
        connection.initialSettings = [
            HTTP2Setting(parameter: .maxConcurrentStreams, value: opened.streamsMax),
            HTTP2Setting(parameter: .maxHeaderListSize, value: 16 * 1024),
        ]
        // A client that cancels many requests is under test, not an attacker.
        connection.maximumConnectionGlitches = .max
        connection.controlFrameRateLimit.maximumCount = .max
        var streams = NIOHTTP2Handler.StreamConfiguration()
        streams.streamResetFrameRateLimit.maximumCount = .max
        streams.streamErrorRateLimit.maximumCount = .max
        let cut = ConnectionCut()
        let bypass = FrameBypass()
        let handler = APNsConnectionHandler(
            opened.connection, service: self, cut: cut, bypass: bypass)
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandlers([
            cut, TLSServerHandler(arrived, settings: tls), bypass,
            NIOHTTP2Handler(
                mode: .server, connectionConfiguration: connection, streamConfiguration: streams),
            handler,
        ])
        let bound = NIOLoopBound(handler, eventLoop: channel.eventLoop)
        handlers.withLock { $0[opened.connection] = bound }
    }

    /// Records the end of a connection.
    func closed(_ connection: Int) {
        _ = handlers.withLock { $0.removeValue(forKey: connection) }
        state.withLock { $0.closed(connection) }
    }

    func goAway(reason: String) {
        for (connection, effects) in state.withLock({ $0.goAway(reason: reason) }) {
            guard let handler = handlers.withLock({ $0[connection] }) else { continue }
            handler.eventLoop.execute { handler.value.perform(effects) }
        }
    }

    func closeAll() {
        for handler in handlers.withLock({ Array($0.values) }) {
            handler.eventLoop.execute { handler.value.perform([.cut]) }
        }
    }
}

/// Passes each accepted connection on at once.
private final class APNsReception: Reception {
    private let start: (Arrived) -> Void

    init(_ start: @escaping (Arrived) -> Void) { self.start = start }

    func take(_ arrived: Arrived) -> Bool {
        start(arrived)
        return false
    }

    func passOn() {}
}
