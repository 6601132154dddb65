import CLinux
import COpenSSL
import GatewayTLS
import Glibc

/// Many client connections on one thread: an epoll loop over non-blocking sockets.
final class Generator {
    /// Bytes read from a socket at once, and decrypted at once.
    static let bufferBytes = 64 * 1024
    /// Connections served between two waits.
    private static let eventsMax = 512
    /// Longest wait, so that a signal is noticed.
    private static let waitMillisecondsMax: Int64 = 100

    let tls: TLSClient
    private let poller: Poller
    private var connections: [ClientConnection?] = []
    private var freeSlots: [Int] = []
    private var ciphertext = [UInt8](repeating: 0, count: bufferBytes)
    /// The bytes decrypted last; each connection's in turn.
    var plaintext = [UInt8](repeating: 0, count: bufferBytes)
    private var events = [epoll_event](repeating: epoll_event(), count: eventsMax)

    /// - Parameter ca: A file with the certificates to trust.
    init(ca: String) throws {
        tls = try TLSClient(ca: ca)
        poller = try Poller(for: "the load generator")
    }

    deinit { for connection in connections { connection?.close() } }

    // MARK: Connections

    /// Starts to connect; `user` receives the rest.
    func connect(
        _ settings: ConnectionSettings, user: any ConnectionUser
    ) throws -> ClientConnection {
        let connection = try ClientConnection(settings, tls: tls, user: user)
        if let slot = freeSlots.popLast() {
            connection.slot = slot
            connections[slot] = connection
        } else {
            connection.slot = connections.count
            connections.append(connection)
        }
        _ = poller.add(
            connection.socket, for: EPOLLIN.rawValue | EPOLLOUT.rawValue,
            token: UInt64(connection.slot))
        return connection
    }

    /// Sends a request or more.
    func send(_ bytes: [UInt8], on connection: ClientConnection) {
        guard connection.state == .open, let session = connection.session else { return }
        ERR_clear_error()
        let written = SSL_write(session, bytes, Int32(clamping: bytes.count))
        guard Int(written) == bytes.count else {
            fail(connection, "TLS: \(TLSClient.reason())")
            return
        }
        flush(connection)
    }

    /// Closes it, with TLS's alert when there is a session; its user receives nothing more.
    func close(_ connection: ClientConnection) {
        guard connection.state != .closed else { return }
        if connection.state == .open, let session = connection.session {
            SSL_shutdown(session)
            let alert = tls.outgoingBytes()
            _ = Glibc.send(connection.socket, alert, alert.count, Int32(MSG_NOSIGNAL))
        }
        drop(connection)
    }

    private func drop(_ connection: ClientConnection) {
        connection.close()
        connections[connection.slot] = nil
        freeSlots.append(connection.slot)
    }

    /// Closes it and tells its user.
    func fail(_ connection: ClientConnection, _ reason: String) {
        guard connection.state != .closed else { return }
        drop(connection)
        connection.user.closed(connection, reason: reason)
    }

    private func watch(_ connection: ClientConnection, for wanted: UInt32) {
        connection.wantsWriting = wanted & EPOLLOUT.rawValue != 0
        _ = poller.modify(connection.socket, for: wanted, token: UInt64(connection.slot))
    }

    // MARK: The loop

    /// Serves the connections until `isDone`, asked between two rounds, or until the time is over.
    /// Returns whether it is done. Throws ``Interruption``.
    ///
    /// - Parameter timer: Called before each wait: does what is due, and returns the time of its
    ///   next call, in monotonic nanoseconds.
    @discardableResult
    func run(
        seconds: Double, timer: () -> Int64? = { nil }, until isDone: () -> Bool
    ) throws -> Bool {
        let end = monotonicNanoseconds() + Int64(seconds * 1e9)
        while true {
            try Interruption.check()
            let wish = min(timer() ?? end, end)
            if isDone() { return true }
            let now = monotonicNanoseconds()
            if now >= end { return false }
            // Rounded up: to wake too early would be to wait without rest.
            let wait = min(max(0, (wish - now + 999_999) / 1_000_000), Self.waitMillisecondsMax)
            for event in poller.wait(upTo: Int32(wait), into: &events) ?? [] {
                // A slot given to another since gets a needless look, no more.
                if let connection = connections[Int(event.data.u64)] {
                    serve(connection, event.events)
                }
            }
        }
    }

    private func serve(_ connection: ClientConnection, _ ready: UInt32) {
        if connection.state == .connecting {
            var error: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(connection.socket, SOL_SOCKET, SO_ERROR, &error, &size)
            guard error == 0 else {
                fail(connection, "cannot connect: \(String(cString: strerror(error)))")
                return
            }
            guard ready & EPOLLOUT.rawValue != 0 else { return }
            connection.state = .handshaking
            advance(connection)
        } else if ready & EPOLLOUT.rawValue != 0 {
            flush(connection)
        }
        if ready & ~EPOLLOUT.rawValue != 0 { read(connection) }
    }

    private func read(_ connection: ClientConnection) {
        let count = recv(connection.socket, &ciphertext, Self.bufferBytes, 0)
        guard count > 0 else {
            if count == 0 { fail(connection, "the server closed the connection") }
            if count < 0, errno != EAGAIN, errno != EINTR {
                fail(connection, String(cString: strerror(errno)))
            }
            return
        }
        BIO_write(tls.incoming, ciphertext, Int32(count))
        advance(connection)
        tls.clearIncoming()
    }

    /// Writes to the socket what it takes.
    func flush(_ connection: ClientConnection) {
        connection.unsent += tls.outgoingBytes()
        var sent = 0
        while sent < connection.unsent.count {
            let count = connection.unsent.withUnsafeBytes { bytes in
                // Sound: `sent` is below the count, and the pointer stays inside the closure.
                Glibc.send(
                    connection.socket, bytes.baseAddress.map { $0 + sent }, bytes.count - sent,
                    Int32(MSG_NOSIGNAL))
            }
            if count < 0 {
                if errno == EAGAIN { break }
                fail(connection, String(cString: strerror(errno)))
                return
            }
            sent += count
        }
        connection.unsent.removeFirst(sent)
        let wants = !connection.unsent.isEmpty
        if wants != connection.wantsWriting {
            watch(connection, for: EPOLLIN.rawValue | (wants ? EPOLLOUT.rawValue : 0))
        }
    }

    // MARK: Records that no client needs, for what they cost the peer

    func sendTinyRecords(_ count: Int, on connection: ClientConnection) {
        guard connection.state == .open, let session = connection.session else { return }
        ERR_clear_error()
        for _ in 0..<count where SSL_write(session, [UInt8(ascii: "x")], 1) != 1 {
            return fail(connection, "TLS: \(TLSClient.reason())")
        }
        flush(connection)
    }

    /// Sends key updates that ask the peer for one of its own each (RFC 8446, section 4.6.3).
    func sendKeyUpdates(_ count: Int, on connection: ClientConnection) {
        guard connection.state == .open, let session = connection.session else { return }
        ERR_clear_error()
        for _ in 0..<count {
            guard SSL_key_update(session, SSL_KEY_UPDATE_REQUESTED) == 1,
                SSL_do_handshake(session) == 1
            else { return fail(connection, "TLS: \(TLSClient.reason())") }
        }
        flush(connection)
    }
}
