import CCurl
import CNGHTTP2
import COpenSSL
import CurlMulti
import GatewayCore

/// One connection to APNs, used by its pool's thread alone: libcurl opens and encrypts it, nghttp2
/// makes frames of pushes, and answers of frames (RFC 9113).
///
/// libcurl would make the frames as well, at several times the cost for each push. And it says
/// neither what the peer allows nor that the peer is about to go, and repeats by itself what the
/// peer refused; all of that is for the pool to know and to do.
final class APNsConnection {
    /// What came of a push.
    enum Ending {
        /// It was answered.
        case answered(status: Int, body: [UInt8], uniqueID: String?)
        /// It was not.
        case failed(APNsOutcome.Failure)
        /// It was not sent.
        case unsent
    }

    /// What a pool has to know.
    enum Event {
        /// The connection is open.
        case connected
        /// The peer allows so many requests at once.
        case allowed(Int)
        /// The peer takes no more requests, or the connection is gone.
        case retired
        /// A push has ended.
        case ended(UInt64, Ending)
    }

    private enum Standing {
        case connecting
        case open(CurlStream)
        case closed
    }

    /// What happened since it was last asked.
    private(set) var events: [Event] = []

    private let configuration: APNsPool.Configuration
    private let fields: APNsFields
    private let trust: DeliveryTrust
    private let easy: CurlEasy
    private let session: OpaquePointer
    private var standing = Standing.connecting
    private var streams = APNsStreams()
    private let payloads: [[UInt8]]

    /// What was read, and what is to be written: from `written` to `filled`.
    private let input: UnsafeMutableRawBufferPointer
    private let output: UnsafeMutableRawBufferPointer
    private var (written, filled) = (0, 0)
    private var isBlocked = false
    private var isRetired = false
    /// Whether the peer sent anything.
    private var hasHeard = false
    /// When something was last sent, and since when a PING is not answered, in monotonic
    /// milliseconds.
    private var sentAt: Int64
    private var pingedAt: Int64?

    private static let bufferBytes = 64 * 1_024
    /// A frame with its head, and some more.
    private static let frameBytesMax = 17 * 1_024
    private static let recordBytesMax = 16 * 1_024
    private static let bodyBytesMax = 4_096
    private static let uniqueIDBytesMax = 256

    /// A connection that begins to be opened; `nil` when there is no memory.
    ///
    /// - Parameter fields: Of the pool's pushes.
    init?(
        _ configuration: APNsPool.Configuration, _ trust: DeliveryTrust, _ fields: APNsFields,
        _ multi: CurlMulti, now: Int64
    ) {
        guard let easy = CurlEasy() else { return nil }
        var session: OpaquePointer?
        guard let callbacks = APNsCallbacks.all,
            nghttp2_session_client_new(&session, callbacks, nil) == 0, let session
        else {
            easy.free()
            return nil
        }
        self.configuration = configuration
        self.fields = fields
        self.trust = trust
        self.easy = easy
        self.session = session
        payloads = [APNsPushForm.reloadingPayload, APNsPushForm.wakingPayload]
        sentAt = now
        // Sound: both are this object's from here to `deinit`.
        input = .allocate(byteCount: Self.bufferBytes, alignment: 1)
        output = .allocate(byteCount: Self.bufferBytes, alignment: 1)
        // Sound: the session does not outlive this object.
        let context = Unmanaged.passUnretained(self).toOpaque()
        nghttp2_session_set_user_data(session, context)
        var noPush = nghttp2_settings_entry(
            settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0)
        guard nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), &noPush, 1) == 0,
            configure(context), multi.add(easy)
        else {
            standing = .closed
            return nil
        }
    }

    deinit {
        nghttp2_session_del(session)
        easy.free()
        input.deallocate()
        output.deallocate()
    }

    private func configure(_ context: UnsafeMutableRawPointer) -> Bool {
        var options = CurlOptions(easy)
        options.secure(connectDeadline: configuration.connectDeadline)
        CurlStream.configure(&options)
        options.set(CURLOPT_URL, configuration.origin)
        options.set(CURLOPT_FRESH_CONNECT, 1)
        options.set(CURLOPT_PIPEWAIT, 0)
        // Not the environment's: what is sent here goes where it says and nowhere else.
        options.set(CURLOPT_PROXY, "")
        options.set(CURLOPT_DNS_CACHE_TIMEOUT, 0)
        trust.configure(easy, &options)
        options.context(context)
        options.note(client_curl_set_open_callback(easy.pointer, onOpen))
        options.note(client_curl_set_tls_callback(easy.pointer, onTLS))
        return options.areTaken
    }

    // MARK: For the pool

    /// The socket, from the connection's opening to ``close(_:)``.
    private(set) var socket: curl_socket_t?

    /// How many pushes are under way.
    var underWay: Int { streams.count }

    /// What happened since it was last asked.
    func takeEvents() -> [Event] {
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    /// Takes a push that is to be sent, as soon as the connection is open.
    ///
    /// - Parameters:
    ///   - flight: What its ending is reported with.
    ///   - token: A provider token and its number.
    /// - Returns: Whether it was taken; if not, there is nothing to report.
    func send(
        _ push: APNsPush, id: String, _ flight: UInt64,
        token: (number: UInt64, text: String)?, now: Int64, wall: Int64
    ) -> Bool {
        if case .closed = standing { return false }
        let deadline = now.later(by: Int64(configuration.deadline.curlMilliseconds))
        let place = streams.add(flight, deadline: deadline)
        let number = fields.with(push, id: id, token: token, wall: wall) { fields in
            var body = nghttp2_data_provider(
                source: nghttp2_data_source(fd: push.form.channel == .background ? 1 : 0),
                read_callback: APNsCallbacks.onPayload)
            return nghttp2_submit_request(
                session, nil, fields.baseAddress, fields.count, &body, Self.pointer(to: place))
        }
        guard let number, number > 0 else {
            _ = streams.remove(place)
            return false
        }
        streams[place]?.id = number
        sentAt = now
        return true
    }

    /// libcurl has opened the connection, or could not.
    func connected(_ code: CURLcode, _ multi: CurlMulti, now: Int64) {
        guard case .connecting = standing else { return }
        guard code == CURLE_OK, let stream = CurlStream(easy) else { return fail(.notConnected) }
        standing = .open(stream)
        sentAt = now
        // Only from the first read on does libcurl say what was negotiated.
        read()
        guard case .open = standing else { return }
        guard let tls = stream.tls, Self.isHTTP2(tls) else { return fail(.notConnected) }
        events.append(.connected)
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
                (pingedAt, hasHeard) = (nil, true)
                let taken = nghttp2_session_mem_recv(session, input.baseAddress, count)
                // It sends a GOAWAY of its own before it gives up.
                guard taken == count else {
                    flushBeforeEnd(stream)
                    return fail(.connectionEnded)
                }
            }
        }
    }

    /// Writes what can be written, and waits for the socket where there is more.
    func flush(_ multi: CurlMulti) {
        guard case .open(let stream) = standing else { return }
        guard write(stream) else { return fail(.connectionEnded) }
        let isBlocked = written < filled
        if isBlocked != self.isBlocked {
            self.isBlocked = isBlocked
            multi.watch(stream.socket, toWrite: isBlocked)
        }
        let isOver =
            nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
        if isOver { fail(.connectionEnded) }
    }

    /// Ends what has taken too long, and asks an idle peer whether it is there.
    ///
    /// - Returns: When that is to be looked at again.
    func expire(now: Int64) -> Int64 {
        while let (place, stream) = streams.first, stream.deadline <= now {
            switch standing {
            case .connecting: finish(place, .failed(.notConnected))
            case .open where !isBegun(stream): finish(place, .unsent)
            default: finish(place, .failed(.timedOut))
            }
            nghttp2_session_set_stream_user_data(session, stream.id, nil)
            nghttp2_submit_rst_stream(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id,
                NGHTTP2_CANCEL.rawValue)
        }
        var next = streams.first?.stream.deadline ?? .max
        guard case .open = standing else { return next }
        if let pingedAt {
            let end = pingedAt.later(by: Int64(configuration.deadline.curlMilliseconds))
            if end <= now { fail(.connectionEnded) }
            next = min(next, end)
        } else {
            let idleMax = Int64(configuration.idleBeforePing.curlMilliseconds)
            if sentAt.later(by: idleMax) <= now {
                nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
                (pingedAt, sentAt) = (now, now)
                return now
            }
            next = min(next, sentAt.later(by: idleMax))
        }
        return next
    }

    /// Says goodbye where that is possible without waiting, and closes; what is under way has ended
    /// with that.
    func close(_ multi: CurlMulti) {
        if case .open(let stream) = standing {
            nghttp2_session_terminate_session(session, NGHTTP2_NO_ERROR.rawValue)
            flushBeforeEnd(stream)
        }
        fail(.connectionEnded)
        // Before libcurl closes it: the next connection's socket may have the same number.
        if let socket { multi.unwatch(socket) }
        multi.remove(easy)
    }

    // MARK: Bytes

    private func flushBeforeEnd(_ stream: CurlStream) {
        _ = write(stream)
    }

    /// - Returns: Whether the connection is still there.
    private func write(_ stream: CurlStream) -> Bool {
        while true {
            // What was blocked has to be written from where it is.
            if written == filled { (written, filled) = (0, 0) }
            while output.count - filled >= Self.frameBytesMax {
                var bytes: UnsafePointer<UInt8>?
                let count = nghttp2_session_mem_send(session, &bytes)
                guard count > 0, let bytes else {
                    if count < 0 { return false }
                    break
                }
                guard count <= output.count - filled else { return false }
                // Sound: it fits, and nghttp2 keeps the bytes until it is asked for the next ones.
                output.baseAddress.map { $0 + filled }?.copyMemory(from: bytes, byteCount: count)
                filled += count
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

    /// Ends everything: what is under way ended like this, unless it was answered.
    private func fail(_ failure: APNsOutcome.Failure) {
        if case .closed = standing { return }
        while let (place, stream) = streams.first {
            if failure == .notConnected || isBegun(stream) {
                finish(place, .failed(failure))
            } else {
                // Who ends a connection at once, as for want of a certificate, never was a peer.
                finish(place, hasHeard ? .unsent : .failed(.notConnected))
            }
        }
        standing = .closed
        retire()
    }

    /// Whether something of a request was made ready to be written. What waits for room on the
    /// connection is not in nghttp2's table.
    private func isBegun(_ stream: APNsStreams.Stream) -> Bool {
        nghttp2_session_find_stream(session, stream.id) != nil
    }

    private func retire() {
        guard !isRetired else { return }
        isRetired = true
        events.append(.retired)
    }

    /// - Parameter ending: What came of it, unless its status is here: then that counts, whatever
    ///   happened to the rest of the answer.
    private func finish(_ place: Int, _ ending: Ending) {
        guard let stream = streams.remove(place) else { return }
        guard stream.status >= 200 else {
            events.append(.ended(stream.flight, ending))
            return
        }
        let uniqueID =
            stream.uniqueID.isEmpty ? nil : String(decoding: stream.uniqueID, as: UTF8.self)
        events.append(
            .ended(
                stream.flight,
                .answered(status: stream.status, body: stream.body, uniqueID: uniqueID)))
    }

    // MARK: What nghttp2 tells

    /// nghttp2 keeps a pointer for each stream; this one is the stream's place and one.
    private static func pointer(to place: Int) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawPointer(bitPattern: place + 1)
    }

    private func place(of stream: Int32) -> Int? {
        let pointer = nghttp2_session_get_stream_user_data(session, stream)
        let place = Int(bitPattern: pointer) - 1
        return place >= 0 ? place : nil
    }

    fileprivate func took(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, _ stream: Int32
    ) {
        guard let place = place(of: stream) else { return }
        if name.elementsEqual(":status".utf8) {
            // nghttp2 lets none pass but three digits.
            streams[place]?.status = value.prefix(3).reduce(0) { $0 * 10 + Int($1 &- 0x30) }
        } else if name.elementsEqual("apns-unique-id".utf8), value.count <= Self.uniqueIDBytesMax {
            streams[place]?.uniqueID = Array(value)
        }
    }

    fileprivate func took(_ piece: UnsafeBufferPointer<UInt8>, _ stream: Int32) {
        guard let place = place(of: stream), let room = streams[place].map({ $0.body.count }),
            room < Self.bodyBytesMax
        else { return }
        streams[place]?.body.append(contentsOf: piece.prefix(Self.bodyBytesMax - room))
    }

    fileprivate func closed(_ stream: Int32, _ code: UInt32) {
        guard let place = place(of: stream) else { return }
        finish(
            place,
            .failed(code == NGHTTP2_REFUSED_STREAM.rawValue ? .notProcessed : .streamReset))
    }

    fileprivate func notSent(_ stream: Int32) {
        guard let place = streams.place(of: stream) else { return }
        finish(place, .unsent)
    }

    fileprivate func tookSettings() {
        let allowed = nghttp2_session_get_remote_settings(
            session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        events.append(.allowed(Int(clamping: allowed)))
    }

    fileprivate func tookGoAway() { retire() }

    fileprivate func payload(
        _ number: Int32, into memory: UnsafeMutableRawBufferPointer
    ) -> Int {
        let payload = payloads[number == 1 ? 1 : 0]
        memory.copyBytes(from: payload.prefix(memory.count))
        return min(payload.count, memory.count)
    }

    // MARK: What libcurl asks

    private static func isHTTP2(_ tls: OpaquePointer) -> Bool {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(tls, &name, &count)
        // Sound: OpenSSL keeps the name as long as the connection.
        return UnsafeBufferPointer(start: name, count: Int(count)).elementsEqual("h2".utf8)
    }
}

/// nghttp2's callbacks, for all sessions.
private enum APNsCallbacks {
    private struct Callbacks: @unchecked Sendable {
        // Sound: nghttp2 only reads them once they are made.
        let pointer: OpaquePointer
    }

    /// `nil` when there was no memory.
    static var all: OpaquePointer? { made?.pointer }

    private static let made: Callbacks? = {
        var callbacks: OpaquePointer?
        guard nghttp2_session_callbacks_new(&callbacks) == 0, let callbacks else { return nil }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, _, context in
            guard let frame, UInt32(frame.pointee.hd.type) == NGHTTP2_HEADERS.rawValue
            else { return 0 }
            connection(context)?.took(
                UnsafeBufferPointer(start: name, count: nameCount),
                UnsafeBufferPointer(start: value, count: valueCount), frame.pointee.hd.stream_id)
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, stream, bytes, count, context in
            connection(context)?.took(UnsafeBufferPointer(start: bytes, count: count), stream)
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) {
            _, stream, code, context in
            connection(context)?.closed(stream, code)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
            guard let head = frame?.pointee.hd else { return 0 }
            switch UInt32(head.type) {
            case NGHTTP2_GOAWAY.rawValue: connection(context)?.tookGoAway()
            case NGHTTP2_SETTINGS.rawValue
            where UInt32(head.flags) & NGHTTP2_FLAG_ACK.rawValue == 0:
                connection(context)?.tookSettings()
            default: break
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) {
            _, frame, _, context in
            guard let head = frame?.pointee.hd, UInt32(head.type) == NGHTTP2_HEADERS.rawValue
            else { return 0 }
            connection(context)?.notSent(head.stream_id)
            return 0
        }
        return Callbacks(pointer: callbacks)
    }()

    /// Called for the body of a push.
    static let onPayload: nghttp2_data_source_read_callback = {
        _, _, bytes, count, flags, source, context in
        flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
        return connection(context)?.payload(
            source?.pointee.fd ?? 0, into: UnsafeMutableRawBufferPointer(start: bytes, count: count)
        ) ?? 0
    }

    private static func connection(_ context: UnsafeMutableRawPointer?) -> APNsConnection? {
        // Sound: the connection frees its session before it goes.
        context.map { Unmanaged<APNsConnection>.fromOpaque($0).takeUnretainedValue() }
    }
}

/// The version of the libnghttp2 that is loaded, such as `1.52.0`.
package var nghttp2Version: String {
    // Sound: nghttp2 answers with a constant of its own, valid as long as the process.
    nghttp2_version(0)?.pointee.version_str.map { String(cString: $0) } ?? ""
}

/// Called by libcurl for a socket.
private let onOpen:
    @convention(c) (
        UnsafeMutableRawPointer?, curlsocktype, UnsafeMutablePointer<curl_sockaddr>?
    ) -> curl_socket_t = { _, _, address in
        guard let address = address?.pointee else { return -1 }
        return deliverySocket(address.family, address.socktype, address.protocol) ?? -1
    }

/// Called by libcurl with OpenSSL's context of a connection before that is opened.
private let onTLS:
    @convention(c) (
        UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
    ) -> CURLcode = { _, context, _ in
        let offered: [UInt8] = [2, UInt8(ascii: "h"), UInt8(ascii: "2")]
        guard let context = context.map(OpaquePointer.init),
            // Zero is success here.
            SSL_CTX_set_alpn_protos(context, offered, UInt32(offered.count)) == 0
        else { return CURLE_OUT_OF_MEMORY }
        // One read for a record, not one for its head and one for the rest.
        gateway_SSL_CTX_set_read_ahead(context, 1)
        return CURLE_OK
    }
