import Glibc
import NIOCore

/// A TCP socket that accepts connections. It refuses them before ``listen()``, but holds its port
/// from the start, so that no other process can get a port that the system chose. Closed with this
/// object.
package final class ListeningSocket: Sendable {
    /// The most connections that the kernel queues until they are accepted; it may queue fewer
    /// (`net.core.somaxconn`).
    private static let backlog: Int32 = 4_096
    /// The least such time of a connection, in milliseconds: networks of phones fail for as long.
    package static let userTimeoutMin: Int64 = 40_000

    let descriptor: Int32
    /// The port that was bound, even if port 0 was requested.
    package let port: Int

    /// Binds to a name or address; with port 0 the system chooses a free port.
    ///
    /// - Parameter patience: The time after which the kernel ends an accepted connection whose peer
    ///   accepts nothing, in milliseconds (tcp(7), TCP_USER_TIMEOUT); at least ``userTimeoutMin``.
    /// - Throws: `SocketAddressError` for a name that cannot be resolved, `IOError` with the
    ///   kernel's reason.
    package convenience init(host: String, port: Int, patience: Int64 = 0) throws {
        let address = try SocketAddress.makeAddressResolvingHost(host, port: port)
        try self.init(address, Int32(clamping: max(Self.userTimeoutMin, patience)))
    }

    private init(_ address: SocketAddress, _ userTimeout: Int32) throws {
        let descriptor = socket(
            CInt(address.protocol.rawValue), Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0, fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0,
            fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0
        else { throw Self.failure("socket") }
        do {
            // Connections left by an earlier process must not block a configured port. A port that
            // the system chooses has none, and without the option it is exclusive.
            if address.port != 0 { try Self.set(descriptor, SOL_SOCKET, SO_REUSEADDR) }
            // Accepted sockets inherit these on Linux.
            try Self.set(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY)
            try Self.set(descriptor, CInt(IPPROTO_TCP), TCP_USER_TIMEOUT, to: userTimeout)
            let bound = address.withSockAddr { bind(descriptor, $0, socklen_t($1)) }
            guard bound == 0 else { throw Self.failure("bind") }
            port = try Self.port(of: descriptor)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
        self.descriptor = descriptor
    }

    /// Begins to queue connections. Throws `IOError` with the kernel's reason.
    package func listen() throws {
        guard Glibc.listen(descriptor, Self.backlog) == 0 else { throw Self.failure("listen") }
    }

    /// Refuses connections from now on, including those that wait to be accepted.
    func stopListening() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    deinit { Glibc.close(descriptor) }

    private static func set(
        _ socket: Int32, _ level: Int32, _ option: Int32, to value: Int32 = 1
    ) throws {
        var value = value
        guard setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
        else { throw failure("setsockopt") }
    }

    private static func port(of socket: Int32) throws -> Int {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutableBytes(of: &storage) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) {
                getsockname(socket, $0.baseAddress, &size)
            }
        }
        guard result == 0 else { throw failure("getsockname") }
        // The port has the same place in an address of either family.
        let port = withUnsafeBytes(of: &storage) {
            $0.load(fromByteOffset: MemoryLayout<sa_family_t>.size, as: in_port_t.self)
        }
        return Int(in_port_t(bigEndian: port))
    }

    private static func failure(_ call: String) -> IOError {
        IOError(errnoCode: errno, reason: call)
    }
}
