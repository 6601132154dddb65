import CCurl
import Foundation
import WidgetModel

/// A held-open event stream, read on a thread of its own into a queue.
///
/// It can be cut at any byte and can stop reading, so that tests do to a server what networks do.
package final class TestHTTPStream: Sendable {
    /// What came next.
    package enum Item: Sendable {
        /// A block of the stream.
        case block(ServerSentEvent)
        /// The stream is over. `nil` for an orderly end by the server, else why.
        case ended(String?)
    }

    private struct State {
        var head = TestHTTPAnswer()
        var isHeadComplete = false
        var blocks: [ServerSentEvent] = []
        var taken = 0
        var parser = EventStreamParser()
        var bytesTaken = 0
        var cutAt = Int.max
        var isReading = true
        var socket: Int32 = -1
        var isOver = false
        var endReason: String?
    }

    private let state = TestHTTPMonitor(State())
    private let receiveBufferBytes: Int32?

    /// Opens a stream at once, over a connection of its own.
    ///
    /// - Parameters:
    ///   - lastEventID: Sent as `Last-Event-ID`.
    ///   - cutAtByte: As ``cut(atByte:)``, from the start.
    ///   - receiveBufferBytes: The socket's receive buffer, for a reader the server soon fills.
    package init(
        url: String, ca: String, path: String, token: String?, lastEventID: String? = nil,
        version: TestHTTPVersion = .one, headers: [(String, String)] = [],
        receiveBufferBytes: Int? = nil, cutAtByte: Int? = nil
    ) {
        if let cutAtByte { state.update { $0.cutAt = cutAtByte } }
        self.receiveBufferBytes = receiveBufferBytes.map { Int32($0) }
        var fields = testHeaders(token, headers, hasBody: false)
        fields.append(("Accept", EventStreamEncoder.mediaType))
        if let lastEventID { fields.append(("Last-Event-ID", lastEventID)) }
        let request = (url: url + path, ca: ca, version: version, fields: fields)
        onThread { [self] in
            let handle = TestHTTPHandle()
            handle.prepare(
                url: request.url, ca: request.ca, version: request.version, method: "GET",
                headers: request.fields, body: nil)
            run(handle)
        }
    }

    // MARK: Reading

    /// Status and header fields, as soon as they are there; `nil` when the stream ended before.
    package func head(seconds: Double = 30) -> TestHTTPAnswer? {
        state.wait(seconds: seconds) { state -> TestHTTPAnswer?? in
            state.isHeadComplete ? .some(state.head) : state.isOver ? .some(nil) : nil
        } ?? nil
    }

    /// The next block, or the stream's end (again and again); `nil` when neither came in time.
    package func next(timeout seconds: Double = 10) -> Item? {
        state.wait(seconds: seconds) { state in
            if state.taken < state.blocks.count {
                defer { state.taken += 1 }
                return .block(state.blocks[state.taken])
            }
            return state.isOver ? .ended(state.endReason) : nil
        }
    }

    /// Every block that came so far and was not taken yet.
    package func takeAll() -> [ServerSentEvent] {
        state.update { state in
            defer { state.taken = state.blocks.count }
            return Array(state.blocks[state.taken...])
        }
    }

    /// Whether the stream is over.
    package var isOver: Bool { state.update { $0.isOver } }

    /// Bytes of the stream read so far.
    package var bytesRead: Int { state.update { $0.bytesTaken } }

    /// The reconnection time the server asked for last, in milliseconds.
    package var retry: Int? { state.update { $0.parser.retry } }

    // MARK: Trouble

    /// Ends the connection, without a word to the server, when `count` bytes of the stream were
    /// read: bytes after them are never seen.
    package func cut(atByte count: Int) {
        state.update { $0.cutAt = count }
    }

    /// Stops reading from the connection, which stays open.
    package func stopReading() {
        state.update { $0.isReading = false }
    }

    /// Reads again.
    package func resumeReading() {
        state.update { $0.isReading = true }
    }

    /// Ends the connection now.
    package func close() {
        state.update { state in
            state.cutAt = 0
            state.isReading = true
            if state.socket >= 0 { shutdown(state.socket, Int32(SHUT_RDWR)) }
        }
    }

    /// Waits for the stream's end.
    package func waitForEnd(seconds: Double = 10) -> Bool {
        state.wait(seconds: seconds) { $0.isOver ? true : nil } ?? false
    }

    // MARK: The thread

    private func run(_ handle: TestHTTPHandle) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        handle.set(CURLOPT_CONNECTTIMEOUT, 30)
        handle.set(CURLOPT_FORBID_REUSE, 1)
        handle.setCallbacks(
            header: { bytes, size, count, context in
                guard let bytes, let context else { return 0 }
                let stream = Unmanaged<TestHTTPStream>.fromOpaque(context).takeUnretainedValue()
                let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
                stream.take(headerLine: String(decoding: line, as: UTF8.self))
                return size * count
            },
            body: { bytes, size, count, context in
                guard let bytes, let context else { return 0 }
                let stream = Unmanaged<TestHTTPStream>.fromOpaque(context).takeUnretainedValue()
                return stream.take(UnsafeRawBufferPointer(start: bytes, count: size * count))
            }, context: context)
        setSocketCallbacks(handle, context)
        let code = withExtendedLifetime(self) { handle.perform() }
        state.update { state in
            state.isOver = true
            if code != CURLE_OK { state.endReason = handle.words(for: code) }
        }
    }

    private func take(headerLine line: String) {
        state.update { state in
            state.head.take(headerLine: line)
            if line == "\r\n" || line == "\n" { state.isHeadComplete = true }
        }
    }

    private func take(_ bytes: UnsafeRawBufferPointer) -> Int {
        // A day: in effect until reading is wanted again or the stream is cut.
        _ = state.wait(seconds: 86_400) { $0.isReading ? true : nil }
        return state.update { state in
            if state.head.status != 200 { return bytes.count }
            let room = min(bytes.count, max(0, state.cutAt - state.bytesTaken))
            state.bytesTaken += room
            do {
                state.blocks += try state.parser.parse(bytes.prefix(room))
            } catch {
                return 0
            }
            return room
        }
    }

    private func setSocketCallbacks(
        _ handle: TestHTTPHandle, _ context: UnsafeMutableRawPointer
    ) {
        handle.setSocketCallback(
            { context, socket, _ in
                guard let context, fcntl(socket, F_SETFD, FD_CLOEXEC) == 0 else { return 1 }
                let stream = Unmanaged<TestHTTPStream>.fromOpaque(context).takeUnretainedValue()
                if var bytes = stream.receiveBufferBytes {
                    setsockopt(
                        socket, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
                }
                stream.state.update { $0.socket = socket }
                return 0
            }, context)
        handle.setCloseCallback(
            { context, socket in
                guard let context else { return Glibc.close(socket) }
                let stream = Unmanaged<TestHTTPStream>.fromOpaque(context).takeUnretainedValue()
                // Under the lock: `close()` must not shut down a number that is somebody else's.
                return stream.state.update { state in
                    if state.socket == socket { state.socket = -1 }
                    return Glibc.close(socket)
                }
            }, context)
    }
}
