import CCurl
import Foundation

/// The open sockets of a client, on its thread. Must outlive its connections.
final class ClientSockets {
    private let limiter: ConcurrencyLimiter
    private let receiveBufferBytes: Int32?
    /// The open sockets, by descriptor. libcurl closes some without a callback, namely those whose
    /// connecting was given up; the next socket then gets the same number.
    private var sockets: Set<curl_socket_t> = []

    init(_ configuration: CurlClient.Configuration, _ limiter: ConcurrencyLimiter) {
        self.limiter = limiter
        receiveBufferBytes = configuration.receiveBufferBytes
    }

    /// Makes libcurl close a handle's sockets through this object.
    func configure(_ easy: CurlEasy, _ options: inout CurlOptions) {
        // Sound: the driver keeps this object until every connection is closed.
        let context = Unmanaged.passUnretained(self).toOpaque()
        options.set(CURLOPT_CLOSESOCKETDATA, context)
        options.note(client_curl_set_close_callback(easy.pointer, onClose))
    }

    /// Opens a socket; returns -1 when the system provides none.
    func open(_ address: curl_sockaddr) -> curl_socket_t {
        let descriptor = curlSocket(address)
        guard descriptor >= 0 else { return -1 }
        if var bytes = receiveBufferBytes {
            // Set before connecting, because it determines the first window that the peer gets.
            setsockopt(
                descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
        }
        sockets.insert(descriptor)
        limiter.noteConnections(sockets.count)
        return descriptor
    }

    fileprivate func closed(_ socket: curl_socket_t) -> Int32 {
        sockets.remove(socket)
        limiter.noteConnections(sockets.count)
        return close(socket)
    }
}

/// Called by libcurl instead of `close(2)`.
private let onClose: @convention(c) (UnsafeMutableRawPointer?, curl_socket_t) -> Int32 = {
    context, socket in
    guard let context else { return -1 }
    // Sound: the driver keeps the sockets until every connection is closed.
    return Unmanaged<ClientSockets>.fromOpaque(context).takeUnretainedValue().closed(socket)
}
