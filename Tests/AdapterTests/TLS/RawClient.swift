import COpenSSL
import Foundation
import GatewayTestSupport
import Glibc

/// A blocking TLS client on a socket of its own, used from one thread.
final class RawClient {
    struct Options {
        var version: Int32? = nil
        var protocols: [String] = []
        var session: OpaquePointer? = nil
        var certificate: (chain: String, key: String)? = nil
        var suites: String? = nil
        var weakest = false
        /// The code of a maximum fragment length (RFC 6066 section 4).
        var fragmentLength: UInt8? = nil
        var receiveBuffer: Int32? = nil
    }

    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    let socket: Int32
    private let context: OpaquePointer
    let ssl: OpaquePointer

    /// Connects without sending a byte.
    init(port: Int, _ options: Options = Options()) throws {
        socket = try Self.connect(port: port, receiveBuffer: options.receiveBuffer)
        guard let context = SSL_CTX_new(TLS_client_method()) else {
            throw Failed(description: "no context")
        }
        self.context = context
        if options.weakest { SSL_CTX_set_cipher_list(context, "ALL:@SECLEVEL=0") }
        if let version = options.version {
            _ = gateway_SSL_CTX_set_version_range(context, version, version)
        }
        if let code = options.fragmentLength {
            SSL_CTX_set_tlsext_max_fragment_length(context, code)
        }
        if let suites = options.suites { SSL_CTX_set_ciphersuites(context, suites) }
        if let certificate = options.certificate {
            SSL_CTX_use_certificate_chain_file(context, certificate.chain)
            SSL_CTX_use_PrivateKey_file(context, certificate.key, SSL_FILETYPE_PEM)
        }
        guard let ssl = SSL_new(context) else { throw Failed(description: "no connection") }
        self.ssl = ssl
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
        Glibc.close(socket)
    }

    static func connect(port: Int, receiveBuffer: Int32? = nil) throws -> Int32 {
        signal(SIGPIPE, SIG_IGN)
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var size = receiveBuffer {
            setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, UInt32(MemoryLayout<Int32>.size))
        }
        var limit = timeval(tv_sec: Int(Patience.seconds), tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, UInt32(MemoryLayout<timeval>.size))
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, UInt32(MemoryLayout<timeval>.size))
        let result = sockaddr_in(loopback: 1, port: UInt16(port)).withSockaddr {
            Glibc.connect(socket, $0, $1)
        }
        guard result == 0 else { throw Failed(description: "connect: errno \(errno)") }
        return socket
    }

    @discardableResult
    func handshake() throws -> RawClient {
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

    func failure(_ result: Int32) -> Failed {
        let kind = SSL_get_error(ssl, result)
        let code = ERR_get_error()
        guard code != 0 else { return Failed(description: "error \(kind), errno \(errno)") }
        return Failed(description: String(cString: ERR_reason_error_string(code)))
    }

    func write(_ bytes: [UInt8]) throws {
        let result = attempt { SSL_write(ssl, bytes, Int32(bytes.count)) }
        guard result == bytes.count else { throw failure(result) }
    }

    /// Reads exactly `count` bytes.
    func read(_ count: Int) throws -> [UInt8] {
        var all: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16 * 1024)
        while all.count < count {
            let result = attempt {
                SSL_read(ssl, &piece, Int32(min(piece.count, count - all.count)))
            }
            guard result > 0 else { throw failure(result) }
            all.append(contentsOf: piece[..<Int(result)])
        }
        return all
    }

    /// Reads up to the peer's `close_notify`; throws at any other end.
    func readToGoodbye() throws -> [UInt8] {
        var all: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            let result = attempt { SSL_read(ssl, &piece, Int32(piece.count)) }
            if result > 0 {
                all.append(contentsOf: piece[..<Int(result)])
            } else if SSL_get_error(ssl, result) == SSL_ERROR_ZERO_RETURN {
                return all
            } else {
                throw failure(result)
            }
        }
    }

    /// Returns the records that the client makes in `body`, without sending them.
    func withheld(_ body: () throws -> Void) throws -> [UInt8] {
        guard let memory = BIO_new(BIO_s_mem()), let own = SSL_get_wbio(ssl) else {
            throw Failed(description: "no memory")
        }
        BIO_up_ref(own)
        SSL_set0_wbio(ssl, memory)
        defer { SSL_set0_wbio(ssl, own) }
        try body()
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(memory))
        let count = BIO_read(memory, &bytes, Int32(bytes.count))
        return Array(bytes.prefix(Int(max(0, count))))
    }

    /// Sends bytes without TLS.
    func sendPlain(_ bytes: [UInt8]) throws {
        guard uninterrupted({ Glibc.send(socket, bytes, bytes.count, 0) }) == bytes.count else {
            throw Failed(description: "send: errno \(errno)")
        }
    }

    func sayGoodbye() { SSL_shutdown(ssl) }
    func shutdownSending() { shutdown(socket, Int32(SHUT_WR)) }

    var alpn: String? {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &name, &length)
        guard let name, length > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
    }

    var version: String { String(cString: SSL_get_version(ssl)) }
    var cipher: String { String(cString: SSL_CIPHER_get_name(SSL_get_current_cipher(ssl))) }
    var isResumed: Bool { SSL_session_reused(ssl) == 1 }
    /// The session, for another client to resume; the caller frees it.
    var session: OpaquePointer? { SSL_get1_session(ssl) }

    /// The subject of the server's certificate.
    var serverName: String {
        guard let certificate = SSL_get0_peer_certificate(ssl),
            let text = X509_NAME_oneline(X509_get_subject_name(certificate), nil, 0)
        else { return "" }
        defer { CRYPTO_free(text, nil, 0) }
        return String(cString: text)
    }

    /// Reads the bytes of a plain socket up to its end or reset.
    static func readPlain(_ socket: Int32) -> [UInt8] {
        var all: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(socket, &piece, piece.count, 0)
            guard count > 0 else { return all }
            all.append(contentsOf: piece[..<count])
        }
    }
}
