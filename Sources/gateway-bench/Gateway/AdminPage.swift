import Glibc

/// Reads a page of the plain admin port; blocks.
enum AdminPage {
    /// Longest answer, bytes.
    private static let bytesMax = 4 * 1024 * 1024

    /// The answer to a GET, head included.
    static func get(_ path: String, port: UInt16) throws -> String {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var patience = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let request = Array(
            "GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
        let isConnected =
            sockaddr_in(loopback: 1, port: port).withSockaddr { connect(descriptor, $0, $1) } == 0
        guard isConnected, send(descriptor, request, request.count, 0) == request.count else {
            throw BenchFailure("the admin port does not answer")
        }
        var page: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while page.count < bytesMax {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count < 0 { throw BenchFailure("the admin port does not answer") }
            if count == 0 { break }
            page += buffer[..<count]
        }
        return String(decoding: page, as: UTF8.self)
    }
}
