import GatewayOperations
import GatewayTLS
import Glibc
import NIOCore
import ServiceLifecycle

/// A port of the gateway.
package struct Listener: Service {
    /// The transport of a port's connections.
    package enum Transport: Sendable {
        /// With a TLS handshake on one of several threads. Only connections that request more than
        /// an event stream get a channel.
        case tls(ListeningSocket, TLSIdentity, ConnectionLimit, threads: Int)
        /// Without TLS; each connection becomes a channel at once.
        case plain(Address)
    }

    let transport: Transport
    let setup: HTTPPipeline
    /// Called with the port once connections are accepted.
    let onServing: @Sendable (Int) -> Void

    package init(
        _ transport: Transport, setup: HTTPPipeline,
        onServing: @escaping @Sendable (Int) -> Void
    ) {
        self.transport = transport
        self.setup = setup
        self.onServing = onServing
    }

    /// Accepts connections until the gateway stops, then waits for those that are busy.
    package func run() async throws {
        let acceptor = try await accept()
        onServing(acceptor.port)
        await withTaskCancellationOrGracefulShutdownHandler {
            await withTaskCancellationHandler {
                await setup.open.ended()
            } onCancel: {
                setup.open.cut()
            }
        } onCancelOrGracefulShutdown: {
            acceptor.stop()
            setup.open.stop()
        }
        await acceptor.ended()
    }

    private func accept() async throws -> Acceptor {
        switch transport {
        case .plain(let address):
            do {
                return .plain(try await setup.acceptPlain(at: address))
            } catch {
                throw PortError(address, error)
            }
        case .tls(let socket, let identity, let limit, let threads):
            try socket.listen()
            let arrivals = try TLSAcceptor(
                socket, identity: identity, settings: setup.arrivalSettings, limit: limit,
                threads: threads,
                // In HTTP/2 the server sends its preface at once (RFC 9113 section 3.4).
                waits: { $0 != "h2" }
            ) { [setup] in ConnectionDispatcher(setup) }
            return .tls(arrivals, port: socket.port)
        }
    }

    /// The listening socket and its server.
    private enum Acceptor: Sendable {
        case tls(TLSAcceptor, port: Int)
        case plain(any Channel)

        var port: Int {
            switch self {
            case .tls(_, let port): port
            case .plain(let channel): channel.localAddress?.port ?? 0
            }
        }

        func stop() {
            switch self {
            case .tls(let arrivals, _): arrivals.stop()
            case .plain(let channel): channel.close(promise: nil)
            }
        }

        func ended() async {
            switch self {
            case .tls(let arrivals, _): await arrivals.ended()
            case .plain(let channel): try? await channel.closeFuture.get()
            }
        }
    }
}

/// A port that cannot be opened.
package struct PortError: Error, Sendable, CustomStringConvertible {
    package let address: Address
    /// The kernel's reason.
    private let reason: String

    package init(_ address: Address, _ error: any Error) {
        self.address = address
        guard let error = error as? IOError else {
            reason = "\(error)"
            return
        }
        let isInUse = error.errnoCode == EADDRINUSE
        reason =
            String(cString: strerror(error.errnoCode))
            + (isInUse ? "; another program, or another gateway, listens there" : "")
    }

    package var description: String { "\(address) cannot be opened: \(reason)" }
}
