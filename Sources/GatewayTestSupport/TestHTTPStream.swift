import CurlMulti
import Foundation
import WidgetModel

/// A held-open event stream, read on a thread of its own into a queue. It can be cut at any byte
/// and can stop reading, so that tests do to a server what networks do. Not reading blocks the
/// thread: over HTTP/2 libcurl would read on from a transfer that is paused.
package final class TestHTTPStream: TransferReceiver {
    /// The next event of a stream.
    package enum Item: Sendable {
        case block(ServerSentEvent)
        /// The stream is over. `nil` for an orderly end by the server, else why.
        case ended(String?)
    }

    private struct State {
        var head: TestHTTPAnswer?
        var blocks: [ServerSentEvent] = []
        var taken = 0
        var parser = EventStreamParser()
        var bytesTaken = 0
        var cutAt = Int.max
        var isReading = true
        var isOver = false
        var endReason: String?
    }

    private let state = TestHTTPMonitor(State())
    private let client: CurlClient

    /// Opens a stream at once, over a connection of its own. `cutAtByte` is as for
    /// ``cut(atByte:)``, from the start. A small socket buffer, `receiveBufferBytes`, makes a
    /// reader that the server soon fills.
    package init(
        url: String, ca: String, path: String, token: String?, lastEventID: String? = nil,
        version: TestHTTPVersion = .one, headers: [(String, String)] = [],
        receiveBufferBytes: Int? = nil, cutAtByte: Int? = nil
    ) {
        if let cutAtByte { state.update { $0.cutAt = cutAtByte } }
        var fields = testHeaders(token, headers, hasBody: false)
        fields.append(("Accept", EventStreamEncoder.mediaType))
        if let lastEventID { fields.append(("Last-Event-ID", lastEventID)) }
        client = testClient(ca: ca, version, receiveBufferBytes: receiveBufferBytes)
        do throws(CurlError) {
            let request = CurlRequest(
                "GET", origin: url, target: path, fields: try CurlFields(fields), timeout: nil)
            _ = client.start(request, receiver: self)
        } catch {
            ended(nil, error)
        }
    }

    // MARK: Reading

    /// Status and header fields, as soon as they are there; `nil` when the stream ended before.
    package func head(seconds: Double = Patience.seconds) -> TestHTTPAnswer? {
        state.wait(seconds: seconds) { state -> TestHTTPAnswer?? in
            state.head.map { .some($0) } ?? (state.isOver ? .some(nil) : nil)
        } ?? nil
    }

    /// The next block, or the stream's end (again and again); `nil` when neither came in time.
    package func next(timeout seconds: Double = Patience.seconds) -> Item? {
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

    package func resumeReading() {
        state.update { $0.isReading = true }
    }

    /// Ends the connection now.
    package func close() {
        state.update { state in
            state.cutAt = 0
            state.isReading = true
        }
        client.close()
    }

    package func waitForEnd(seconds: Double = Patience.seconds) -> Bool {
        state.wait(seconds: seconds) { $0.isOver ? true : nil } ?? false
    }

    // MARK: The thread

    package func received(_ head: CurlHead) {
        state.update { $0.head = TestHTTPAnswer(head) }
    }

    package func received(_ bytes: UnsafeRawBufferPointer) -> Int? {
        // A day: in effect until reading is wanted again or the stream is cut.
        _ = state.wait(seconds: 86_400) { $0.isReading ? true : nil }
        return state.update { state in
            if state.head?.status != 200 { return bytes.count }
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

    package func ended(_ head: CurlHead?, _ failure: CurlError?) {
        state.update { state in
            state.isOver = true
            state.endReason = failure?.message
        }
        client.close()
    }
}
