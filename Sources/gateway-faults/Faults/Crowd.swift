import Foundation
import GatewayTestSupport

/// Plain TCP connections to a gateway.
final class Crowd {
    private var sockets: [Int32] = []

    /// Opens connections, as many as the system allows.
    ///
    /// - Parameter bytes: Sent on each.
    init(_ gateway: GatewayProcess, connections: Int, sending bytes: [UInt8] = []) throws {
        guard let port = gateway.url.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw WireFault(what: "no port in \(gateway.url)")
        }
        for _ in 0..<connections {
            let descriptor = socket(
                AF_INET,
                Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
                    | Int32(SOCK_CLOEXEC.rawValue), 0)
            guard descriptor >= 0 else { break }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            // Sound: the address is rebound for the call alone, with its own size.
            _ = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            if !bytes.isEmpty {
                _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
            }
            sockets.append(descriptor)
        }
    }

    deinit { close() }

    /// The number of connections that are open.
    var count: Int { sockets.count }

    /// Closes them all.
    ///
    /// - Parameter resets: Whether by a reset.
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
