import COpenSSL
import Glibc

/// A blocking client on a socket of its own, over TLS or plain TCP: the test chooses every byte.
///
/// Used by one thread at a time, see ``elsewhere(_:)``.
package final class RawClient {
    /// What the client offers in its handshake.
    package struct Options {
        package var protocols: [String]
        package var version: Int32?
        package var certificate: (chain: String, key: String)?
        package var session: OpaquePointer? = nil
        package var suites: String? = nil
        package var weakest = false
        /// The code of a maximum fragment length (RFC 6066 section 4).
        package var fragmentLength: UInt8? = nil
        package var receiveBuffer: Int32? = nil

        package init(
            _ protocols: String..., version: Int32? = nil,
            certificate: (chain: String, key: String)? = nil
        ) {
            self.protocols = protocols
            self.version = version
            self.certificate = certificate
        }

        /// Returns a context with the options; the caller frees it.
        fileprivate func context() throws -> OpaquePointer? {
            let context: OpaquePointer? = SSL_CTX_new(TLS_client_method())
            if weakest { SSL_CTX_set_cipher_list(context, "ALL:@SECLEVEL=0") }
            if let version { _ = gateway_SSL_CTX_set_version_range(context, version, version) }
            if let code = fragmentLength {
                SSL_CTX_set_tlsext_max_fragment_length(context, code)
            }
            if let suites { SSL_CTX_set_ciphersuites(context, suites) }
            if let certificate {
                guard SSL_CTX_use_certificate_chain_file(context, certificate.chain) == 1,
                    SSL_CTX_use_PrivateKey_file(context, certificate.key, SSL_FILETYPE_PEM) == 1
                else { throw TestFailure("the client certificate is not usable") }
            }
            return context
        }
    }

    package let socket: Int32
    private let context: OpaquePointer?
    /// OpenSSL's connection; `nil` without TLS.
    package let ssl: OpaquePointer?

    /// Connects, without a handshake.
    ///
    /// - Parameters:
    ///   - preamble: Bytes to send at once.
    ///   - options: Those of TLS; `nil` for a connection without it.
    package init(
        port: some BinaryInteger, preamble: [UInt8] = [], _ options: Options? = Options()
    ) throws {
        signal(SIGPIPE, SIG_IGN)
        socket = Glibc.socket(
            AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        context = try options?.context()
        ssl = context == nil ? nil : SSL_new(context)
        guard options == nil || ssl != nil else { throw TestFailure("no TLS") }
        if var size = options?.receiveBuffer {
            setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, UInt32(MemoryLayout<Int32>.size))
        }
        wait(seconds: Patience.seconds)
        let connected = sockaddr_in(loopback: 1, port: UInt16(port)).withSockaddr {
            connect(socket, $0, $1)
        }
        guard connected == 0 else { throw TestFailure("connect: errno \(errno)") }
        try sendPlain(preamble)
        guard let options else { return }
        if !options.protocols.isEmpty {
            let list = options.protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
            SSL_set_alpn_protos(ssl, list, UInt32(list.count))
        }
        if let session = options.session { SSL_set_session(ssl, session) }
        SSL_set_fd(ssl, socket)
        SSL_set_connect_state(ssl)
    }

    deinit {
        SSL_free(ssl)
        SSL_CTX_free(context)
        close(socket)
    }

    /// Sets the timeout of reads and writes.
    private func wait(seconds: Double) {
        let whole = seconds.rounded(.down)
        var time = timeval(tv_sec: Int(whole), tv_usec: Int((seconds - whole) * 1_000_000))
        let size = UInt32(MemoryLayout<timeval>.size)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, size)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, size)
    }

    /// Performs the handshake; without TLS there is none.
    @discardableResult
    package func handshake() throws -> RawClient {
        guard ssl != nil else { return self }
        let result = attempt { SSL_do_handshake(ssl) }
        guard result == 1 else { throw failure(result) }
        return self
    }

    private func attempt(_ call: () -> Int32) -> Int32 {
        uninterrupted {
            ERR_clear_error()
            return call()
        }
    }

    private func failure(_ result: Int32) -> TestFailure {
        let kind = SSL_get_error(ssl, result)
        let code = ERR_get_error()
        guard code != 0 else { return TestFailure("error \(kind), errno \(errno)") }
        return TestFailure(String(cString: ERR_reason_error_string(code)))
    }

    // MARK: Sending

    /// Encrypts and sends bytes.
    package func write(_ bytes: [UInt8]) throws {
        let result = attempt { SSL_write(ssl, bytes, Int32(bytes.count)) }
        guard result == bytes.count else { throw failure(result) }
    }

    /// Sends bytes without TLS.
    package func sendPlain(_ bytes: [UInt8]) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = uninterrupted { Glibc.send(socket, rest, rest.count, 0) }
            guard count > 0 else { throw TestFailure("send: errno \(errno)") }
            rest.removeFirst(count)
        }
    }

    /// Sends all bytes as the connection does; returns false when the peer no longer accepts them.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        guard !bytes.isEmpty else { return true }
        return (try? ssl == nil ? sendPlain(bytes) : write(bytes)) != nil
    }

    @discardableResult
    package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Returns the records that the client makes in `body`, without sending them.
    package func withheld(_ body: () throws -> Void) throws -> [UInt8] {
        guard let memory = BIO_new(BIO_s_mem()), let own = SSL_get_wbio(ssl) else {
            throw TestFailure("no memory")
        }
        BIO_up_ref(own)
        SSL_set0_wbio(ssl, memory)
        defer { SSL_set0_wbio(ssl, own) }
        try body()
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(memory))
        let count = BIO_read(memory, &bytes, Int32(bytes.count))
        return Array(bytes.prefix(Int(max(0, count))))
    }

    /// Sends a key update of TLS 1.3; returns false when the peer accepts nothing more.
    @discardableResult
    package func updateKeys() -> Bool {
        SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1
            && attempt { SSL_do_handshake(ssl) } == 1
    }

    /// Sends `close_notify`.
    package func sayGoodbye() { SSL_shutdown(ssl) }
    package func shutdownSending() { shutdown(socket, Int32(SHUT_WR)) }

    /// Ends a socket's connection with a reset.
    package static func reset(_ socket: Int32, port: some BinaryInteger) throws {
        var hard = linger(l_onoff: 1, l_linger: 0)
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &hard, UInt32(MemoryLayout<linger>.size))
        // The second descriptor takes the first one's number, so the socket itself is closed.
        let other = try RawClient(port: port, nil)
        _ = withExtendedLifetime(other) { dup2(other.socket, socket) }
    }

    // MARK: Reading

    /// Reads what comes on a socket, as it is, up to its end or reset.
    package static func drain(_ socket: Int32) {
        var bytes = [UInt8](repeating: 0, count: 4096)
        while recv(socket, &bytes, bytes.count, 0) > 0 {}
    }

    private func readOnce(_ most: Int = 64 * 1024) -> (result: Int32, bytes: [UInt8]) {
        var bytes = [UInt8](repeating: 0, count: most)
        let result =
            ssl == nil
            ? uninterrupted { Int32(recv(socket, &bytes, most, 0)) }
            : attempt { SSL_read(ssl, &bytes, Int32(most)) }
        return (result, Array(bytes.prefix(Int(max(0, result)))))
    }

    /// Reads exactly `count` bytes.
    package func read(_ count: Int) throws -> [UInt8] {
        var all: [UInt8] = []
        while all.count < count {
            let (result, bytes) = readOnce(min(16 * 1024, count - all.count))
            guard result > 0 else { throw failure(result) }
            all += bytes
        }
        return all
    }

    /// Reads up to the peer's `close_notify`; throws at any other end.
    package func readToGoodbye() throws -> [UInt8] {
        var all: [UInt8] = []
        while true {
            let (result, bytes) = readOnce()
            all += bytes
            if result > 0 { continue }
            guard SSL_get_error(ssl, result) == SSL_ERROR_ZERO_RETURN else { throw failure(result) }
            return all
        }
    }

    /// Reads until `isEnough`, the peer's end, or `seconds` of silence.
    package func readUntil(
        seconds: Double = Patience.seconds, _ isEnough: ([UInt8]) -> Bool = { _ in false }
    ) -> (bytes: [UInt8], isClosed: Bool) {
        wait(seconds: seconds)
        var all: [UInt8] = []
        while !isEnough(all) {
            let (result, bytes) = readOnce()
            if result <= 0 {
                let isQuiet =
                    errno == EAGAIN
                    || ssl != nil && SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ
                return (all, !isQuiet)
            }
            all += bytes
        }
        return (all, false)
    }

    // MARK: What was agreed on

    package var alpn: String? {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &name, &length)
        guard let name, length > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
    }

    package var version: String { String(cString: SSL_get_version(ssl)) }
    package var cipher: String { String(cString: SSL_CIPHER_get_name(SSL_get_current_cipher(ssl))) }
    package var isResumed: Bool { SSL_session_reused(ssl) == 1 }
    /// The session, for another client to resume; the caller frees it.
    package var session: OpaquePointer? { SSL_get1_session(ssl) }

    /// The subject of the server's certificate.
    package var serverName: String {
        guard let certificate = SSL_get0_peer_certificate(ssl),
            let text = X509_NAME_oneline(X509_get_subject_name(certificate), nil, 0)
        else { return "" }
        defer { CRYPTO_free(text, nil, 0) }
        return String(cString: text)
    }
}

/// Runs blocking work on a thread of its own, so that no test's task waits for another test's
/// socket.
package func elsewhere<Result: Sendable>(
    _ work: @escaping @Sendable () throws -> Result
) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        onThread(stackBytes: 1024 * 1024) {
            continuation.resume(with: Swift.Result { try work() })
        }
    }
}
