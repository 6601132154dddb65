import CCurl
import COpenSSL
import CurlMulti
import GatewayCore

/// One connection to APNs, used only by its pool's thread: libcurl opens and encrypts it, and an
/// ``APNsSession`` decides what is sent over it.
///
/// libcurl's own HTTP/2 takes 35 to 50 µs of CPU for each push, this 4 to 9 µs. libcurl also
/// reports neither the peer's limits nor its GOAWAY, and resends refused requests on its own: the
/// pool has to decide about them.
final class APNsConnection {
    private enum Status {
        case connecting
        case open(CurlStream)
        case closed
    }

    /// The socket, from the connection's opening to ``close(_:)``.
    private(set) var socket: curl_socket_t?

    private let configuration: APNsPool.Configuration
    /// The time to wait for an answer, and the idle time before a PING, in milliseconds.
    private let patience: Int64
    private let idleMax: Int64
    private let session: APNsSession
    private let easy: CurlEasy
    private var standing = Status.connecting
    /// The bytes read, and the bytes to write: those from `written` to `filled`.
    private let input: UnsafeMutableRawBufferPointer
    private let output: UnsafeMutableRawBufferPointer
    private var (written, filled) = (0, 0)
    private var isBlocked = false
    /// The time of the last send, and of the PING that is not answered yet, in monotonic
    /// milliseconds.
    private var sentAt: Int64
    private var pingedAt: Int64?

    private static let bufferBytes = 64 * 1_024
    /// The room needed for a frame with its header, with some to spare.
    private static let frameBytesMax = 17 * 1_024
    private static let recordBytesMax = 16 * 1_024

    /// Begins to open a connection; `nil` when there is no memory. `fields` are the header fields
    /// of the pool's pushes.
    init?(
        _ configuration: APNsPool.Configuration, _ fields: APNsFields, _ multi: CurlMulti,
        now: Int64
    ) {
        guard let session = APNsSession(fields), let easy = CurlEasy() else { return nil }
        self.configuration = configuration
        self.session = session
        self.easy = easy
        patience = Int64(configuration.deadline.curlMilliseconds)
        idleMax = Int64(configuration.idleBeforePing.curlMilliseconds)
        sentAt = now
        // Sound: both are this object's from here to `deinit`.
        input = .allocate(byteCount: Self.bufferBytes, alignment: 1)
        output = .allocate(byteCount: Self.bufferBytes, alignment: 1)
        guard configure(), multi.add(easy) else { return nil }
    }

    deinit {
        easy.free()
        input.deallocate()
        output.deallocate()
    }

    private func configure() -> Bool {
        var options = CurlOptions(easy)
        options.secure(connectTimeout: configuration.connectDeadline)
        CurlStream.configure(&options)
        options.set(CURLOPT_URL, configuration.origin)
        options.set(CURLOPT_FRESH_CONNECT, 1)
        options.set(CURLOPT_PIPEWAIT, 0)
        // Ignore the environment's proxy: pushes go to the configured origin and nowhere else.
        options.set(CURLOPT_PROXY, "")
        options.set(CURLOPT_DNS_CACHE_TIMEOUT, 0)
        options.keepAlive(.seconds(600))
        options.trust(configuration.trust)
        if let identity = configuration.identity {
            options.show(certificate: identity.certificate, key: identity.key)
        }
        // Sound: the handle is in use only as long as the driver keeps this object.
        options.context(Unmanaged.passUnretained(self).toOpaque())
        options.closeSocketsOnExec()
        options.note(client_curl_set_tls_callback(easy.pointer, onTLS))
        return options.areTaken
    }

    // MARK: Used by the pool

    /// Returns the events since the last call, replacing the contents of `told`.
    func takeEvents(into told: inout [APNsSession.Event]) { session.takeEvents(into: &told) }

    /// Accepts a push, which is sent once the connection is open. Returns whether it was accepted;
    /// if not, no end is reported.
    ///
    /// - Parameters:
    ///   - flight: The number that identifies the push when its end is reported.
    ///   - token: A provider token and its number.
    func send(
        _ push: APNsPush, id: String, _ flight: UInt64,
        token: (number: UInt64, text: String)?, now: Int64, wall: Int64
    ) -> Bool {
        if case .closed = standing { return false }
        sentAt = now
        return session.send(
            push, id: id, flight, token: token, deadline: now.later(by: patience), wall: wall)
    }

    /// Handles the end of libcurl's attempt to open the connection.
    func connected(_ code: CURLcode, _ multi: CurlMulti, now: Int64) {
        guard case .connecting = standing else { return }
        guard code == CURLE_OK, let stream = CurlStream(easy) else { return fail(.notConnected) }
        standing = .open(stream)
        sentAt = now
        // libcurl reports what was negotiated only after the first read.
        read()
        guard case .open = standing else { return }
        guard let tls = stream.tls, Self.isHTTP2(tls) else { return fail(.notConnected) }
        session.connected()
        socket = stream.socket
        multi.watch(stream.socket, toWrite: false)
    }

    /// Reads what the peer has sent.
    func read() {
        guard case .open(let stream) = standing else { return }
        while true {
            switch stream.read(into: input) {
            case .blocked: return
            case .ended: return fail(.connectionEnded)
            case .bytes(let count):
                pingedAt = nil
                guard session.take(UnsafeRawBufferPointer(rebasing: input[..<count])) else {
                    _ = write(stream)
                    return fail(.connectionEnded)
                }
            }
        }
    }

    /// Writes what the socket accepts, and watches the socket for room if there is more.
    func flush(_ multi: CurlMulti) {
        guard case .open(let stream) = standing else { return }
        guard write(stream) else { return fail(.connectionEnded) }
        let isBlocked = written < filled
        if isBlocked != self.isBlocked {
            self.isBlocked = isBlocked
            multi.watch(stream.socket, toWrite: isBlocked)
        }
        if session.isOver { fail(.connectionEnded) }
    }

    /// Ends requests that have taken too long, and sends a PING to an idle peer. Returns the time
    /// of the next call, in monotonic milliseconds.
    func expire(now: Int64) -> Int64 {
        guard case .open = standing else {
            session.expire(now: now, isConnected: false)
            return session.nextDeadline ?? .max
        }
        session.expire(now: now, isConnected: true)
        if pingedAt == nil, sentAt.later(by: idleMax) <= now {
            session.ping()
            (pingedAt, sentAt) = (now, now)
            return now
        }
        var next = sentAt.later(by: idleMax)
        if let pingedAt {
            next = pingedAt.later(by: patience)
            if next <= now { fail(.connectionEnded) }
        }
        return min(next, session.nextDeadline ?? .max)
    }

    /// Closes the connection, after a GOAWAY if it can be sent without waiting. Requests in flight
    /// end with it.
    func close(_ multi: CurlMulti) {
        if case .open(let stream) = standing {
            session.goodbye()
            _ = write(stream)
        }
        fail(.connectionEnded)
        // Before libcurl closes it: the next connection's socket may have the same number.
        if let socket { multi.unwatch(socket) }
        multi.remove(easy)
    }

    private func fail(_ failure: APNsOutcome.Failure) {
        if case .closed = standing { return }
        standing = .closed
        session.end(failure)
    }

    /// - Returns: Whether the connection is still usable.
    private func write(_ stream: CurlStream) -> Bool {
        while true {
            // A blocked write has to be repeated from the same position.
            if written == filled { (written, filled) = (0, 0) }
            while output.count - filled >= Self.frameBytesMax {
                guard let bytes = session.output(), bytes.count <= output.count - filled else {
                    return false
                }
                if bytes.isEmpty { break }
                UnsafeMutableRawBufferPointer(rebasing: output[filled...]).copyMemory(from: bytes)
                filled += bytes.count
            }
            guard written < filled else { return true }
            let end = min(filled, written + Self.recordBytesMax)
            switch stream.write(UnsafeRawBufferPointer(rebasing: output[written..<end])) {
            case .bytes(let count): written += count
            case .blocked: return true
            case .ended: return false
            }
        }
    }

    private static func isHTTP2(_ tls: OpaquePointer) -> Bool {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(tls, &name, &count)
        // Sound: OpenSSL keeps the name as long as the connection.
        return UnsafeBufferPointer(start: name, count: Int(count)).elementsEqual("h2".utf8)
    }
}

/// Called by libcurl with a connection's OpenSSL context before the connection is opened.
private let onTLS:
    @convention(c) (
        UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
    ) -> CURLcode = { _, context, _ in
        let offered: [UInt8] = [2, UInt8(ascii: "h"), UInt8(ascii: "2")]
        guard let context = context.map(OpaquePointer.init),
            // Zero is success here.
            SSL_CTX_set_alpn_protos(context, offered, UInt32(offered.count)) == 0
        else { return CURLE_OUT_OF_MEMORY }
        // One system call reads a record, not one for its header and one for the rest.
        gateway_SSL_CTX_set_read_ahead(context, 1)
        return CURLE_OK
    }
