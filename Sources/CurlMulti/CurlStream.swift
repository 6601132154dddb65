import CCurl

/// A connection that libcurl opens, including TLS, for a protocol that libcurl does not speak
/// itself (`CURLOPT_CONNECT_ONLY`). Used by one thread.
///
/// Its handle must stay in the multi handle as long as the connection is used; removing it closes
/// the connection.
package struct CurlStream {
    /// The outcome of a read or a write.
    package enum Progress: Sendable, Hashable {
        /// This number of bytes was read or written.
        case bytes(Int)
        /// No progress is possible before the socket is ready.
        case blocked
        /// The connection has ended.
        case ended
    }

    private let easy: CurlEasy
    /// The socket, for ``CurlMulti/watch(_:toWrite:)``.
    package let socket: curl_socket_t

    /// Returns the connection of a handle whose request has ended with `CURLE_OK`; `nil` when there
    /// is none.
    package init?(_ easy: CurlEasy) {
        var socket = curl_socket_t(-1)
        guard client_curl_get_socket(easy.pointer, &socket) == CURLE_OK, socket >= 0 else {
            return nil
        }
        self.easy = easy
        self.socket = socket
    }

    /// Makes a handle open a connection and do nothing else.
    package static func configure(_ options: inout CurlOptions) {
        options.set(CURLOPT_CONNECT_ONLY, 1)
        // Otherwise libcurl would speak HTTP/2 itself as soon as the peer agrees to it.
        options.set(CURLOPT_SSL_ENABLE_ALPN, 0)
    }

    /// OpenSSL's `SSL` of the connection; `nil` before the first ``read(into:)``.
    package var tls: OpaquePointer? { client_curl_get_tls(easy.pointer).map(OpaquePointer.init) }

    /// Reads available bytes.
    package func read(into memory: UnsafeMutableRawBufferPointer) -> Progress {
        var count = 0
        switch curl_easy_recv(easy.pointer, memory.baseAddress, memory.count, &count) {
        case CURLE_OK: return count > 0 ? .bytes(count) : .ended
        case CURLE_AGAIN: return .blocked
        default: return .ended
        }
    }

    /// Writes as many bytes as possible. After `blocked` the same bytes have to be written again
    /// from the same place in memory, with the same length or longer.
    package func write(_ bytes: UnsafeRawBufferPointer) -> Progress {
        var count = 0
        switch curl_easy_send(easy.pointer, bytes.baseAddress, bytes.count, &count) {
        case CURLE_OK: return .bytes(count)
        case CURLE_AGAIN: return .blocked
        default: return .ended
        }
    }
}
