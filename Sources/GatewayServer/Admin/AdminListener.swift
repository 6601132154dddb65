import GatewayTLS
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// The admin port where other machines reach it: with TLS, by the gateway's own certificate.
struct AdminListener: Service {
    let address: Address
    let identity: TLSIdentity
    let settings: TLSServerSettings
    /// Answers, whatever the others are busy with.
    let loop: any EventLoop
    /// Open connections. A quarter may come from one address.
    let connectionsMax: Int
    let http: HTTP1Channel
    let logger: Logger
    /// Called once connections are accepted.
    let onServing: @Sendable () -> Void

    /// Accepts connections until the gateway stops, then waits for those that are busy.
    func run() async throws {
        let socket = try ListeningSocket(host: address.host, port: address.port)
        let (connections, arrivals) = AsyncStream.makeStream(of: Arrived.self)
        let listening = try Arrivals(
            socket, identity: identity, settings: settings,
            limit: ConnectionLimit(connectionsMax, perAddress: max(1, connectionsMax / 4)),
            threads: 1, waits: { _ in true }
        ) { Door { arrivals.yield($0) } }
        onServing()
        let open = OpenChannels()
        await withTaskCancellationOrGracefulShutdownHandler {
            await withDiscardingTaskGroup { tasks in
                for await arrived in connections {
                    tasks.addTask { await serve(arrived, open) }
                }
            }
        } onCancelOrGracefulShutdown: {
            listening.stop()
            open.stop()
            arrivals.finish()
        }
        await listening.ended()
    }

    /// Serves a connection until it ends.
    private func serve(_ arrived: Arrived, _ open: OpenChannels) async {
        let bootstrap = ClientBootstrap(group: loop)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(
                    minimum: 1_024, initial: 2_048, maximum: GatewayChannel.readBytesMax))
        // What goes wrong here ends the connection; nobody else has to know.
        let connection = try? await bootstrap.withConnectedSocket(
            arrived.connection.takeSocket()
        ) { channel in configure(channel, arrived, open) }
        if let connection { await http.handle(value: connection, logger: logger) }
    }

    private func configure(
        _ channel: any Channel, _ arrived: Arrived, _ open: OpenChannels
    ) -> EventLoopFuture<HTTP1Channel.Value> {
        let prepared = channel.eventLoop.makeCompletedFuture {
            guard open.add(channel) else { throw ChannelError.alreadyClosed }
            try channel.pipeline.syncOperations.addHandler(
                TLSServerHandler(arrived, settings: settings))
        }
        return prepared.flatMap { http.setup(channel: channel, logger: logger) }
    }

    /// Hands every connection on.
    private final class Door: Reception {
        private let pass: (Arrived) -> Void

        init(_ pass: @escaping (Arrived) -> Void) { self.pass = pass }

        func take(_ arrived: Arrived) -> Bool {
            pass(arrived)
            return false
        }

        func passOn() {}
    }
}
