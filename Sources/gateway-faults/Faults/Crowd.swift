import Foundation
import GatewayTestSupport

/// Plain TCP connections to a gateway.
final class Crowd {
    private var sockets: [Int32] = []

    /// Opens connections, as many as the system allows, and sends `bytes` on each.
    init(_ gateway: GatewayProcess, connections: Int, sending bytes: [UInt8] = []) throws {
        guard let port = gateway.url.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw TestFailure("no port in \(gateway.url)")
        }
        for _ in 0..<connections {
            let descriptor = socket(
                AF_INET,
                Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
                    | Int32(SOCK_CLOEXEC.rawValue), 0)
            guard descriptor >= 0 else { break }
            let address = sockaddr_in(loopback: 1, port: port)
            _ = address.withSockaddr { connect(descriptor, $0, $1) }
            if !bytes.isEmpty {
                _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
            }
            sockets.append(descriptor)
        }
    }

    deinit { close() }

    /// The number of connections that are open.
    var count: Int { sockets.count }

    /// Closes all connections, by a reset if `resets`.
    func close(resets: Bool = false) {
        for descriptor in sockets {
            if resets {
                var linger = linger(l_onoff: 1, l_linger: 0)
                setsockopt(
                    descriptor, SOL_SOCKET, SO_LINGER, &linger,
                    socklen_t(MemoryLayout<linger>.size))
            }
            Glibc.close(descriptor)
        }
        sockets = []
    }
}
