import GatewayTLS
import NIOCore
import NIOPosix
import ServiceLifecycle

/// The TLS port. Only connections that ask for more than an event stream get a channel.
struct Listener: Service {
    let host: String
    let port: Int
    let connectionsMax: Int
    /// From one source address; `nil` for no limit of their own.
    let connectionsPerAddressMax: Int?
    /// Threads that shake hands.
    let threads: Int
    let identity: TLSIdentity
    let setup: GatewayChannel
    /// Told the port once connections are accepted.
    let onServing: @Sendable (Int) -> Void

    /// Accepts connections until the gateway stops, then waits for those that are busy.
    func run() async throws {
        let socket = try ListeningSocket(host: host, port: port)
        let arrivals = try Arrivals(
            socket, identity: identity, settings: setup.tlsSettings,
            limit: ConnectionLimit(connectionsMax, perAddress: connectionsPerAddressMax),
            threads: threads,
            // In HTTP/2 the server has something to say at once (RFC 9113 section 3.4).
            waits: { $0 != "h2" }
        ) { [setup] in Entrance(setup) }
        onServing(socket.port)
        await withTaskCancellationOrGracefulShutdownHandler {
            await withTaskCancellationHandler {
                await setup.open.ended()
            } onCancel: {
                setup.open.cut()
            }
        } onCancelOrGracefulShutdown: {
            arrivals.stop()
            setup.open.stop()
        }
        await arrivals.ended()
    }
}
