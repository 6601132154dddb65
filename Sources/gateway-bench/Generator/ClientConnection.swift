import COpenSSL
import GatewayTestSupport
import Glibc

/// The receiver of a connection's events. Every call comes from the generator's loop.
protocol ConnectionUser: AnyObject {
    /// The handshake is done.
    func opened(_ connection: ClientConnection)
    func headed(_ connection: ClientConnection, _ head: ResponseHead)
    /// A response that is no event stream is complete.
    func answered(_ connection: ClientConnection, status: Int, body: [UInt8])
    /// Bytes of an event stream came: `events` data lines ended, or an id alone.
    func streamed(_ connection: ClientConnection, events: Int)
    /// It is closed, and not by its user.
    func closed(_ connection: ClientConnection, reason: String)
}

extension ConnectionUser {
    func headed(_ connection: ClientConnection, _ head: ResponseHead) {}
    func answered(_ connection: ClientConnection, status: Int, body: [UInt8]) {}
    func streamed(_ connection: ClientConnection, events: Int) {}
}

struct ConnectionSettings {
    var port: UInt16
    /// Counts up; the source address follows from it.
    var number = 0
}

/// One TLS connection with HTTP/1.1 on it. Owned by the ``Generator``, and by its user.
final class ClientConnection {
    enum State { case connecting, handshaking, open, closed }

    /// The number that its user gave it.
    let number: Int
    var state = State.connecting
    /// Sent and received at the socket.
    let socket: Int32
    /// OpenSSL's side of it; freed by ``close()``.
    private(set) var session: OpaquePointer?
    /// Its user, who outlives it.
    unowned let user: any ConnectionUser
    /// Where the generator keeps it.
    var slot = 0
    /// Whether the poller is asked for room to write.
    var wantsWriting = true
    /// Ciphertext that the socket did not take yet.
    var unsent: [UInt8] = []

    /// Reads the responses.
    var reader = ResponseReader()
    var head: ResponseHead?
    /// The body so far of a response that is no stream.
    var body: [UInt8] = []
    /// Reads the stream.
    var scanner = EventScanner()
    /// Bytes of event stream received, chunk headers removed.
    var streamBytes = 0
    /// Events that its user counted.
    var events = 0

    /// Source addresses 127.0.0.2 and on, so that one does not run out of ports.
    private static let sourceAddresses = 8

    init(_ settings: ConnectionSettings, tls: TLSClient, user: any ConnectionUser) throws {
        number = settings.number
        self.user = user
        socket = Glibc.socket(
            AF_INET,
            Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else {
            throw BenchFailure("no socket: \(String(cString: strerror(errno)))")
        }
        // The value is whole: `deinit` frees what it has when a step fails.
        session = try tls.session()
        try connect(settings)
    }

    deinit { close() }

    private func connect(_ settings: ConnectionSettings) throws {
        set(Int(IPPROTO_TCP), TCP_NODELAY, 1)
        // Ports are then chosen for the pair of addresses, not for the source alone.
        set(Int(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, 1)
        let source = UInt8(2 + settings.number % Self.sourceAddresses)
        let target = sockaddr_in(loopback: 1, port: settings.port)
        let isBound =
            sockaddr_in(loopback: source, port: 0).withSockaddr { bind(socket, $0, $1) } == 0
        guard isBound,
            target.withSockaddr({ Glibc.connect(socket, $0, $1) }) == 0 || errno == EINPROGRESS
        else { throw BenchFailure("cannot connect: \(String(cString: strerror(errno)))") }
    }

    private func set(_ level: Int, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(socket, Int32(level), option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Closes the socket and frees the session. May be called more than once.
    func close() {
        guard state != .closed else { return }
        state = .closed
        SSL_free(session)
        session = nil
        if socket >= 0 { _ = Glibc.close(socket) }
    }
}
