import Foundation
import GatewayTestSupport

/// A way to a PostgreSQL server that can be cut at a byte, or be silent.
package final class ServerProxy: Sendable {
    package enum Direction: CaseIterable, Sendable {
        case toServer
        case toNode
    }

    private struct State {
        /// Whether nothing is forwarded: what comes is kept until it is.
        var isSilent = false
        /// The bytes until every connection is cut, in one direction.
        var cut: (direction: Direction, bytes: Int)?
        /// The sockets of open connections.
        var sockets: Set<Int32> = []
        var isOver = false
    }

    /// The directory of its socket, for the host of a connection string.
    package let directory: String
    /// The path of the server's socket.
    private let target: String
    private let listener: Int32
    private let state = TestHTTPMonitor(State())

    /// Listens in a new directory, and forwards to a server.
    package init(to server: PostgresServer) throws {
        directory = try GatewayProcess.temporaryDirectory()
        let name = "/.s.PGSQL.\(server.port)"
        target = server.directory + name
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let isListening = Self.withAddress(directory + name) { address, length in
            bind(listener, address, length) == 0 && listen(listener, 16) == 0
        }
        guard isListening else { throw TestFailure("the proxy cannot listen: \(errno)") }
        onThread { [listener, weak self] in
            while true {
                let accepted = accept(listener, nil, nil)
                guard accepted >= 0, let self else { return }
                onThread { self.forward(accepted) }
            }
        }
    }

    deinit {
        state.update { state in
            state.isOver = true
            for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
        }
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    /// Keeps what is sent, in both directions, until ``resume()``: connections stay open.
    package func silence() { state.update { $0.isSilent = true } }

    /// Forwards what was kept and what follows.
    package func resume() { state.update { $0.isSilent = false } }

    /// Cuts every connection once so many bytes have passed in a direction.
    package func cut(after bytes: Int, _ direction: Direction) {
        state.update { $0.cut = (direction, bytes) }
    }

    /// Connects to the server and forwards in both directions, until one side closes or is cut.
    private func forward(_ node: Int32) {
        let server = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer {
            close(node)
            close(server)
        }
        let isConnected = Self.withAddress(target) { connect(server, $0, $1) == 0 }
        guard isConnected else { return }
        state.update { $0.sockets.formUnion([node, server]) }
        let isOver = TestHTTPMonitor(false)
        onThread { [self] in
            forward(from: node, to: server, .toServer)
            isOver.update { $0 = true }
        }
        forward(from: server, to: node, .toNode)
        _ = isOver.wait(seconds: 3_600) { $0 ? true : nil }
        state.update { $0.sockets.subtract([node, server]) }
    }

    private func forward(from source: Int32, to sink: Int32, _ direction: Direction) {
        var bytes = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            let count = recv(source, &bytes, bytes.count, 0)
            guard count > 0, let allowed = allow(count, direction) else { break }
            var sent = 0
            while sent < allowed {
                let written = send(
                    sink, Array(bytes[sent..<allowed]), allowed - sent, Int32(MSG_NOSIGNAL))
                guard written > 0 else { break }
                sent += written
            }
            guard sent == count else { break }
        }
        for socket in [source, sink] { shutdown(socket, Int32(SHUT_RDWR)) }
    }

    /// Returns how many of the bytes that came may pass, once any may; cuts all connections where
    /// they are as many as is left to the cut.
    private func allow(_ count: Int, _ direction: Direction) -> Int? {
        state.wait(seconds: 3_600) { state -> Int? in
            if state.isOver { return 0 }
            if state.isSilent { return nil }
            guard let cut = state.cut, cut.direction == direction else { return count }
            guard cut.bytes <= count else {
                state.cut = (direction, cut.bytes - count)
                return count
            }
            state.cut = nil
            // The connection of these bytes ends once they are sent.
            for socket in state.sockets { shutdown(socket, Int32(SHUT_RD)) }
            return cut.bytes
        }
    }

    private static func withAddress<Result>(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            bytes.copyBytes(from: path.utf8.prefix(bytes.count - 1))
        }
        // Sound: the calls take a `sockaddr_un`, and the pointer does not leave the closure.
        return withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
