import COpenSSL
import Foundation
import GatewayTestSupport

/// A connection over TLS or plain TCP on which the test chooses every byte.
///
/// Blocking; used by one thread at a time, see ``elsewhere(_:)``.
final class RawSocket {
    /// The TLS settings of the client.
    struct TLS: Sendable {
        var alpn = "http/1.1"
        /// The lowest and highest version offered.
        var versions: ClosedRange<Int32> = TLS1_2_VERSION...TLS1_3_VERSION
        /// The PEM files of a client certificate and its key.
        var identity: (certificate: String, key: String)?
    }

    private let socket: Int32
    private var context: OpaquePointer?
    private var session: OpaquePointer?

    /// The version agreed on, such as `TLSv1.3`; empty without TLS.
    var version: String { session.map { String(cString: SSL_get_version($0)) } ?? "" }

    /// Connects to `port` of this machine, and performs a TLS handshake unless `tls` is `nil`.
    ///
    /// - Parameter preamble: Bytes to send before the handshake.
    init(port: UInt16, preamble: [UInt8] = [], tls: TLS?) throws {
        socket = Glibc.socket(
            AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let connected = sockaddr_in(loopback: 1, port: port).withSockaddr {
            connect(socket, $0, $1)
        }
        guard connected == 0 else { throw TestFailure("connect: \(errno)") }
        wait(seconds: Patience.seconds)
        if !preamble.isEmpty, !send(preamble) { throw TestFailure("send: \(errno)") }
        if let tls { try shakeHands(tls) }
    }

    deinit {
        SSL_free(session)
        SSL_CTX_free(context)
        if socket >= 0 { Glibc.close(socket) }
    }

    /// Sets the timeout of reads and writes.
    private func wait(seconds: Double) {
        let whole = seconds.rounded(.down)
        var time = timeval(tv_sec: Int(whole), tv_usec: Int((seconds - whole) * 1_000_000))
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, size)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, size)
    }

    private func shakeHands(_ tls: TLS) throws {
        context = SSL_CTX_new(TLS_client_method())
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(tls.versions.lowerBound), nil)
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(tls.versions.upperBound), nil)
        if let (certificate, key) = tls.identity {
            guard SSL_CTX_use_certificate_file(context, certificate, SSL_FILETYPE_PEM) == 1,
                SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1
            else { throw TestFailure("the client certificate is not usable") }
        }
        session = SSL_new(context)
        let protocols = [UInt8(tls.alpn.utf8.count)] + Array(tls.alpn.utf8)
        SSL_set_alpn_protos(session, protocols, UInt32(protocols.count))
        SSL_set_fd(session, socket)
        guard uninterrupted({ SSL_connect(session) }) == 1 else {
            ERR_clear_error()
            throw TestFailure("the handshake failed")
        }
    }

    /// Writes all bytes; returns false when the peer no longer accepts them.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var start = 0
        while start < bytes.count {
            let rest = Array(bytes[start...])
            let count: Int
            if session != nil {
                ERR_clear_error()
                count = Int(uninterrupted { SSL_write(session, rest, Int32(rest.count)) })
            } else {
                count = uninterrupted {
                    Glibc.send(socket, rest, rest.count, Int32(MSG_NOSIGNAL))
                }
            }
            guard count > 0 else { return false }
            start += count
        }
        return true
    }

    /// Sends a key update of TLS 1.3; returns false when the peer accepts nothing more.
    func updateKeys() -> Bool {
        ERR_clear_error()
        return SSL_key_update(session, SSL_KEY_UPDATE_NOT_REQUESTED) == 1
            && uninterrupted { SSL_do_handshake(session) } == 1
    }

    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Ends this side of the connection: by TCP, and before that by `close_notify` if wanted.
    func endSending(closeNotify: Bool) {
        if closeNotify, session != nil {
            ERR_clear_error()
            SSL_shutdown(session)
        }
        shutdown(socket, Int32(SHUT_WR))
    }

    enum Read {
        case bytes([UInt8])
        /// The peer ended the connection.
        case closed
        /// Nothing arrived in time.
        case quiet
    }

    func read() -> Read {
        var bytes = [UInt8](repeating: 0, count: 64 * 1024)
        let count: Int
        var isQuiet = false
        if session != nil {
            ERR_clear_error()
            count = Int(uninterrupted { SSL_read(session, &bytes, Int32(bytes.count)) })
            if count <= 0 {
                let reason = SSL_get_error(session, Int32(count))
                isQuiet = reason == SSL_ERROR_WANT_READ || errno == EAGAIN
            }
        } else {
            count = uninterrupted { recv(socket, &bytes, bytes.count, 0) }
            isQuiet = count < 0 && errno == EAGAIN
        }
        guard count > 0 else { return isQuiet ? .quiet : .closed }
        return .bytes(Array(bytes[..<count]))
    }

    /// Reads until `isEnough`, the peer's end, or `seconds` of silence.
    func readUntil(
        seconds: Double = Patience.seconds, _ isEnough: ([UInt8]) -> Bool = { _ in false }
    ) -> (bytes: [UInt8], isClosed: Bool) {
        wait(seconds: seconds)
        var all: [UInt8] = []
        while !isEnough(all) {
            switch read() {
            case .bytes(let bytes): all += bytes
            case .closed: return (all, true)
            case .quiet: return (all, false)
            }
        }
        return (all, false)
    }
}

/// Runs blocking work on a thread of its own, so that no test waits for another test's socket.
func elsewhere<Result: Sendable>(
    _ work: @escaping @Sendable () throws -> Result
) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        let thread = Thread { continuation.resume(with: Swift.Result { try work() }) }
        thread.stackSize = 1024 * 1024
        thread.start()
    }
}
