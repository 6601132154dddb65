import Hummingbird
import HummingbirdCore
import NIOCore
import NIOExtras
import NIOPosix
import ServiceLifecycle

/// The TLS port. Connections stay with their event loops; only those that ask for more than an
/// event stream get a task.
struct Listener: Service {
    let host: String
    let port: Int
    let connectionsMax: Int
    let setup: GatewayChannel
    let exchanges: AsyncStream<GatewayChannel.Exchange>
    let group: MultiThreadedEventLoopGroup
    /// Told the port once connections are accepted.
    let onServing: @Sendable (Int) -> Void

    /// Accepts connections until the gateway stops, then waits for those that are busy.
    func run() async throws {
        let quiescing = ServerQuiescingHelper(group: group)
        let channel = try await bind(quiescing)
        onServing(channel.localAddress?.port ?? port)
        await withTaskCancellationOrGracefulShutdownHandler {
            await withDiscardingTaskGroup { tasks in
                for await exchange in exchanges {
                    tasks.addTask { await setup.handle(exchange) }
                }
            }
        } onCancelOrGracefulShutdown: {
            let closed = channel.eventLoop.makePromise(of: Void.self)
            closed.futureResult.whenComplete { _ in setup.exchanges.finish() }
            quiescing.initiateShutdown(promise: closed)
        }
        try? await channel.closeFuture.get()
    }

    private func bind(_ quiescing: ServerQuiescingHelper) async throws -> any Channel {
        try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 4096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(
                        AvailableConnectionsChannelHandler(maxConnections: connectionsMax))
                    try pipeline.addHandler(quiescing.makeServerChannelHandler(channel: channel))
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try setup.start(channel) }
            }
            .bind(host: host, port: port).get()
    }
}
