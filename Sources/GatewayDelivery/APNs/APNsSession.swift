import CNGHTTP2
import GatewayCore
import WidgetModel

/// The HTTP/2 layer of one connection to APNs (RFC 9113), without the connection: pushes and bytes
/// go in, bytes and events come out. nghttp2 makes and reads the frames. Used by one thread.
final class APNsSession {
    /// An event that the pool has to know.
    enum Event: Hashable {
        /// The connection is open.
        case connected
        /// The peer allows this number of concurrent requests.
        case allowed(Int)
        /// The peer accepts no more requests, or the connection is lost.
        case retired
        /// A push has ended; one without an outcome was not sent.
        case ended(UInt64, APNsOutcome?, uniqueID: String? = nil)
    }

    private let session: OpaquePointer
    private let fields: APNsFields
    private var streams = APNsStreams()
    private var events: [Event] = []
    private var isRetired = false
    /// Whether the peer has sent anything.
    private var hasHeard = false
    /// The bodies that pushes share.
    private let payloads = [APNsPushForm.reloadingPayload, APNsPushForm.wakingPayload]
    /// The number of a request's own body.
    private static let ownPayload: Int32 = 2

    private static let bodyBytesMax = 4_096
    private static let uniqueIDBytesMax = 256
    private static let noFlags = UInt8(NGHTTP2_FLAG_NONE.rawValue)

    /// Begins a session with the connection preface; `nil` when there is no memory. `fields` are
    /// the header fields of the pool's pushes.
    init?(_ fields: APNsFields) {
        var session: OpaquePointer?
        guard let callbacks = APNsCallbacks.all,
            nghttp2_session_client_new(&session, callbacks, nil) == 0, let session
        else { return nil }
        self.session = session
        self.fields = fields
        // Sound: the session does not outlive this object.
        nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
        var noPush = nghttp2_settings_entry(
            settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0)
        guard nghttp2_submit_settings(session, Self.noFlags, &noPush, 1) == 0 else { return nil }
    }

    deinit {
        nghttp2_session_del(session)
    }

    // MARK: Pushes

    /// Accepts a push. Returns whether it was accepted; if not, no end is reported.
    ///
    /// - Parameters:
    ///   - flight: The number that identifies the push when its end is reported.
    ///   - token: A provider token and its number.
    ///   - deadline: The time at which the push fails without an answer, in monotonic milliseconds;
    ///     never earlier than the deadline of a previous push.
    func send(
        _ push: APNsPush, id: String, _ flight: UInt64,
        token: (number: UInt64, text: String)?, deadline: Int64, wall: Int64
    ) -> Bool {
        let payload: Int32 =
            switch push.form.type {
            case .widgets, .controls: 0
            case .background: 1
            case .liveactivity: Self.ownPayload
            }
        let place = streams.add(flight, payload: push.payload ?? [], deadline: deadline)
        let number = fields.with(push, id: id, token: token, wall: wall) { fields in
            var body = nghttp2_data_provider(
                source: nghttp2_data_source(fd: payload), read_callback: APNsCallbacks.onPayload)
            return nghttp2_submit_request(
                session, nil, fields.baseAddress, fields.count, &body, Self.pointer(to: place))
        }
        guard let number, number > 0 else {
            _ = streams.remove(place)
            return false
        }
        streams[place]?.id = number
        return true
    }

    /// Returns the events since the last call, replacing the contents of `told` and reusing its
    /// memory.
    func takeEvents(into told: inout [Event]) {
        told.removeAll(keepingCapacity: true)
        swap(&told, &events)
    }

    /// Records that the connection is open.
    func connected() { events.append(.connected) }

    /// The time at which the next push ends without an answer, in monotonic milliseconds; `nil`
    /// when none is in flight.
    var nextDeadline: Int64? { streams.first?.stream.deadline }

    /// Ends requests whose deadline has passed. `isConnected` says whether the connection is open.
    func expire(now: Int64, isConnected: Bool) {
        while let (place, stream) = streams.first, stream.deadline <= now {
            if !isConnected {
                finish(place, .failed(.notConnected))
            } else {
                finish(place, isBegun(stream) ? .failed(.timedOut) : nil)
            }
            nghttp2_session_set_stream_user_data(session, stream.id, nil)
            nghttp2_submit_rst_stream(session, Self.noFlags, stream.id, NGHTTP2_CANCEL.rawValue)
        }
    }

    /// Ends all requests because the connection is lost or could not be opened. Each ends with
    /// `failure`, unless it was answered or never sent.
    func end(_ failure: APNsOutcome.Failure) {
        while let (place, stream) = streams.first {
            if failure == .notConnected || isBegun(stream) {
                finish(place, .failed(failure))
            } else {
                // A peer that ends a connection before it sends anything, for example because it
                // requires a certificate, counts as never connected.
                finish(place, hasHeard ? nil : .failed(.notConnected))
            }
        }
        retire()
    }

    // MARK: Bytes

    /// Reads bytes from the peer. Returns whether they were valid; if not, the remaining output
    /// tells the peer so.
    func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        hasHeard = true
        return nghttp2_session_mem_recv(session, bytes.baseAddress, bytes.count) == bytes.count
    }

    /// Returns the next bytes to write, valid until the next call; empty when there are none, and
    /// `nil` when there is no memory.
    func output() -> UnsafeRawBufferPointer? {
        var bytes: UnsafePointer<UInt8>?
        let count = nghttp2_session_mem_send(session, &bytes)
        return count < 0 ? nil : UnsafeRawBufferPointer(start: bytes, count: count)
    }

    /// Whether neither side has anything left to send.
    var isOver: Bool {
        nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    }

    /// Queues a PING, to find out whether the peer is still there.
    func ping() { nghttp2_submit_ping(session, Self.noFlags, nil) }

    /// Queues a GOAWAY, which ends the session.
    func goodbye() { nghttp2_session_terminate_session(session, NGHTTP2_NO_ERROR.rawValue) }

    // MARK: Streams

    /// Whether any part of a request has been prepared for writing. A request that waits for one of
    /// the connection's streams is not in nghttp2's table yet.
    private func isBegun(_ stream: APNsStreams.Stream) -> Bool {
        nghttp2_session_find_stream(session, stream.id) != nil
    }

    fileprivate func retire() {
        guard !isRetired else { return }
        isRetired = true
        events.append(.retired)
    }

    /// - Parameter outcome: The outcome of a request without a status. If its status has arrived,
    ///   that decides, whatever happened to the rest of the answer.
    private func finish(_ place: Int, _ outcome: APNsOutcome?) {
        guard let stream = streams.remove(place) else { return }
        guard stream.status >= 200 else {
            events.append(.ended(stream.flight, outcome))
            return
        }
        let uniqueID =
            stream.uniqueID.isEmpty ? nil : String(decoding: stream.uniqueID, as: UTF8.self)
        events.append(
            .ended(
                stream.flight, APNsOutcome(status: stream.status, body: stream.body),
                uniqueID: uniqueID))
    }

    /// Returns the pointer that nghttp2 keeps for a stream: the stream's place plus one.
    private static func pointer(to place: Int) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawPointer(bitPattern: place + 1)
    }

    private func place(of stream: Int32) -> Int? {
        let place = Int(bitPattern: nghttp2_session_get_stream_user_data(session, stream)) - 1
        return place >= 0 ? place : nil
    }

    // MARK: Events of nghttp2

    fileprivate func took(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, _ stream: Int32
    ) {
        guard let place = place(of: stream) else { return }
        if name.elementsEqual(":status".utf8) {
            // nghttp2 accepts only a status of three digits.
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
        finish(place, nil)
    }

    fileprivate func tookSettings() {
        let allowed = nghttp2_session_get_remote_settings(
            session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        events.append(.allowed(Int(clamping: allowed)))
    }

    /// Copies the next bytes of a request's body, as many as the peer's flow-control windows
    /// permit. Returns their number, and whether they are the last; `nil` for a request that has
    /// ended.
    ///
    /// - Parameter number: The place of the body in ``payloads``, or ``ownPayload``.
    fileprivate func readBody(
        of stream: Int32, payload number: Int32, into memory: UnsafeMutableRawBufferPointer
    ) -> (count: Int, isLast: Bool)? {
        guard let place = place(of: stream), let sent = streams[place]?.bodyBytesSent else {
            return nil
        }
        let payload =
            number == Self.ownPayload
            ? streams[place]?.payload ?? [] : payloads[number == 1 ? 1 : 0]
        let rest = payload.dropFirst(sent)
        let count = min(rest.count, memory.count)
        memory.copyBytes(from: rest.prefix(count))
        streams[place]?.bodyBytesSent = sent + count
        return (count, isLast: count == rest.count)
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
            session(context)?.took(
                UnsafeBufferPointer(start: name, count: nameCount),
                UnsafeBufferPointer(start: value, count: valueCount), frame.pointee.hd.stream_id)
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, stream, bytes, count, context in
            session(context)?.took(UnsafeBufferPointer(start: bytes, count: count), stream)
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) {
            _, stream, code, context in
            session(context)?.closed(stream, code)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
            guard let head = frame?.pointee.hd else { return 0 }
            switch UInt32(head.type) {
            case NGHTTP2_GOAWAY.rawValue: session(context)?.retire()
            case NGHTTP2_SETTINGS.rawValue
            where UInt32(head.flags) & NGHTTP2_FLAG_ACK.rawValue == 0:
                session(context)?.tookSettings()
            default: break
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) {
            _, frame, _, context in
            guard let head = frame?.pointee.hd, UInt32(head.type) == NGHTTP2_HEADERS.rawValue
            else { return 0 }
            session(context)?.notSent(head.stream_id)
            return 0
        }
        return Callbacks(pointer: callbacks)
    }()

    /// Called for each DATA frame of a push, with as much room as flow control allows.
    static let onPayload: nghttp2_data_source_read_callback = {
        _, stream, bytes, count, flags, source, context in
        guard
            let piece = session(context)?.readBody(
                of: stream, payload: source?.pointee.fd ?? 0,
                into: UnsafeMutableRawBufferPointer(start: bytes, count: count))
        else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
        if piece.isLast { flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return piece.count
    }

    private static func session(_ context: UnsafeMutableRawPointer?) -> APNsSession? {
        // Sound: the object frees its session before it goes.
        context.map { Unmanaged<APNsSession>.fromOpaque($0).takeUnretainedValue() }
    }
}

/// The version of the libnghttp2 that is loaded, such as `1.52.0`.
package var nghttp2Version: String {
    // Sound: nghttp2 returns a constant of its own, valid for the life of the process.
    nghttp2_version(0)?.pointee.version_str.map { String(cString: $0) } ?? ""
}
