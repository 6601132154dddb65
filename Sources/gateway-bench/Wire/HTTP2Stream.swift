import CNGHTTP2

/// One GET request over HTTP/2 whose response is read as it comes (RFC 9113), by nghttp2. Has no
/// socket: bytes go in by ``receive(_:)`` and out by ``outgoing()``. Used by one thread.
final class HTTP2Stream {
    /// The window of the stream, and of the connection, in bytes.
    private static let windowBytes: UInt32 = 1 << 20
    private static let noFlags = UInt8(NGHTTP2_FLAG_NONE.rawValue)

    /// The response's status; 0 before its head.
    private(set) var status = 0
    /// The bytes of the response's body in what was received last.
    private(set) var body: [UInt8] = []
    /// The error code of the stream's end, or of the connection's; `nil` while it is open.
    private(set) var endCode: UInt32?
    private var session: OpaquePointer?

    /// A connection that has said nothing but its settings.
    ///
    /// - Throws: ``BenchFailure`` when there is no memory.
    init() throws {
        var callbacks: OpaquePointer?
        defer { nghttp2_session_callbacks_del(callbacks) }
        guard nghttp2_session_callbacks_new(&callbacks) == 0, let callbacks else {
            throw BenchFailure("no memory for HTTP/2")
        }
        Self.set(callbacks)
        // No pushes; the window of streams.
        let settings = [
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue),
                value: Self.windowBytes),
        ]
        // Sound: the session does not outlive this object.
        let context = Unmanaged.passUnretained(self).toOpaque()
        guard nghttp2_session_client_new(&session, callbacks, context) == 0,
            nghttp2_submit_settings(session, Self.noFlags, settings, settings.count) == 0,
            nghttp2_session_set_local_window_size(
                session, Self.noFlags, 0, Int32(Self.windowBytes)) == 0
        else { throw BenchFailure("no memory for HTTP/2") }
    }

    deinit { nghttp2_session_del(session) }

    private static func set(_ callbacks: OpaquePointer) {
        func stream(_ context: UnsafeMutableRawPointer?) -> HTTP2Stream? {
            // Sound: the object frees its session before it goes.
            context.map { Unmanaged<HTTP2Stream>.fromOpaque($0).takeUnretainedValue() }
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, _, name, nameCount, value, valueCount, _, context in
            let name = UnsafeBufferPointer(start: name, count: nameCount)
            if name.elementsEqual(":status".utf8) {
                // nghttp2 lets none pass but three digits.
                stream(context)?.status = UnsafeBufferPointer(start: value, count: valueCount)
                    .reduce(0) { $0 * 10 + Int($1 &- 0x30) }
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, _, bytes, count, context in
            stream(context)?.body += UnsafeBufferPointer(start: bytes, count: count)
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) {
            _, _, code, context in
            stream(context)?.endCode = code
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
            if let frame, UInt32(frame.pointee.hd.type) == NGHTTP2_GOAWAY.rawValue {
                stream(context)?.endCode = frame.pointee.goaway.error_code
            }
            return 0
        }
    }

    /// Asks for a path of `localhost`.
    func get(_ path: String, fields: [(name: String, value: String)]) {
        let head = [
            (":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path),
        ]
        let fields = head + fields.map { ($0.name.lowercased(), $0.value) }
        var text = fields.flatMap { Array($0.utf8) + Array($1.utf8) }
        text.withUnsafeMutableBufferPointer { text in
            var start = text.baseAddress
            // Sound: each name and value stands in `text` where the sum of the lengths before it says,
            // and nghttp2 copies them before this closure returns.
            func next(_ count: Int) -> UnsafeMutablePointer<UInt8>? {
                defer { start = start.map { $0 + count } }
                return start
            }
            let list = fields.map { name, value in
                nghttp2_nv(
                    name: next(name.utf8.count), value: next(value.utf8.count),
                    namelen: name.utf8.count, valuelen: value.utf8.count, flags: Self.noFlags)
            }
            _ = nghttp2_submit_request(session, nil, list, list.count, nil, nil)
        }
    }

    /// Reads what the server sent.
    ///
    /// - Returns: Whether it was HTTP/2.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        body.removeAll(keepingCapacity: true)
        return nghttp2_session_mem_recv(session, bytes.baseAddress, bytes.count) == bytes.count
    }

    /// Returns all that is to be sent now.
    func outgoing() -> [UInt8] {
        var bytes: UnsafePointer<UInt8>?
        var all: [UInt8] = []
        while true {
            let count = nghttp2_session_mem_send(session, &bytes)
            guard count > 0 else { return all }
            all += UnsafeBufferPointer(start: bytes, count: count)
        }
    }
}
