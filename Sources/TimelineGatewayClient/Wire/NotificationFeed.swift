import WidgetModel

/// The notifications for one client, by stream or by poll.
package struct NotificationFeed: Sendable {
    /// The limit of a stream's event, bytes; notifications are far smaller.
    static let eventBytesMax = 64 * 1024
    /// The longest wait that a poll requests from the gateway, seconds; shorter than the silence
    /// after which a connection is taken for dead.
    package static let pollWaitSecondsMax = 30

    private let service: GatewayService
    private let client: String
    private let kind: String?
    private let registration: String?

    /// Creates a feed of one `kind`, or with `nil` of all. `registration` is the digest of the
    /// registration that the client expects to be in force.
    package init(
        service: GatewayService, client: String, kind: String? = nil, registration: String? = nil
    ) {
        self.service = service
        self.client = client
        self.kind = kind
        self.registration = registration
    }

    /// The cursor that the gateway actually resumed at, and its time.
    package struct Opening: Sendable {
        /// The field `Timeline-Cursor`; `nil` if it is missing or malformed.
        package let resumedFrom: Cursor?
        /// The field `Date`.
        package let date: String?

        init(_ head: GatewayResponseHead) {
            resumedFrom = head["timeline-cursor"].flatMap { Cursor(text: $0) }
            date = head["date"]
        }
    }

    /// An element of a stream, in the order of arrival.
    package enum Element: Sendable, Equatable {
        /// A notification in compact serialization, not yet verified.
        case notification(String)
        /// The cursor up to which everything that concerns the client has been sent.
        case moved(Cursor)
        /// The time to wait before reconnecting.
        case retry(Duration)
    }

    package struct Stream: Sendable {
        package let opening: Opening
        fileprivate let body: GatewayBody

        /// Passes every element to `receive` until it returns `false` or the stream ends. Throws
        /// ``GatewayFailure`` if the stream breaks off or is malformed.
        package func read(
            _ receive: @Sendable (Element) async -> Bool
        ) async throws(GatewayFailure) {
            var parser = EventStreamParser(bytesMax: eventBytesMax)
            var last: String?
            var retry: Int?
            var pieces = body.makeAsyncIterator()
            while true {
                let piece: [UInt8]?
                do throws(ConnectionError) {
                    piece = try await pieces.next()
                } catch {
                    throw .connection(error)
                }
                guard let piece else { return }
                let blocks: [ServerSentEvent]
                do throws(EventStreamParser.Failure) {
                    blocks = try parser.parse(piece)
                } catch {
                    throw .unreadable("an event is longer than \(eventBytesMax) bytes")
                }
                if let asked = parser.retry, asked != retry {
                    retry = asked
                    guard await receive(.retry(.milliseconds(asked))) else { return }
                }
                for block in blocks {
                    if let data = block.data, block.event == "reload" {
                        guard await receive(.notification(data)) else { return }
                    }
                    guard let id = block.id, id != last else { continue }
                    last = id
                    // An id that is not a cursor of this gateway's form does not advance the
                    // client: it asks again, and nothing is lost.
                    guard let cursor = Cursor(text: id) else { continue }
                    guard await receive(.moved(cursor)) else { return }
                }
            }
        }
    }

    /// Opens a stream that resumes from a cursor.
    package func open(since: String?) async throws(GatewayFailure) -> Stream {
        var request = GatewayRequest(
            target: target(since: nil),
            headers: [(name: "accept", value: EventStreamEncoder.mediaType)]
                + GatewayService.headers(registration: registration))
        if let since { request.headers.append((name: "last-event-id", value: since)) }
        let stream: GatewayStream
        do throws(ConnectionError) {
            stream = try await service.connection.stream(request)
        } catch {
            throw .connection(error)
        }
        guard stream.head.status == 200 else {
            throw .refused(GatewayService.problem(stream.head, await start(of: stream.body)))
        }
        guard stream.head["content-type"]?.hasPrefix(EventStreamEncoder.mediaType) == true else {
            throw .unreadable("it is not an event stream")
        }
        return Stream(opening: Opening(stream.head), body: stream.body)
    }

    package struct Poll: Sendable {
        package let opening: Opening
        /// The notifications in compact serialization, not yet verified.
        package let notifications: [String]
        /// The client's cursor once these notifications are applied; `nil` if malformed.
        package let cursor: Cursor?
        /// The whole response.
        package let document: JSONValue
    }

    /// Requests the notifications since a cursor. The gateway may wait `wait` seconds for one; with
    /// `nil` it responds at once.
    package func poll(since: String?, wait: Int? = nil) async throws(GatewayFailure) -> Poll {
        var headers =
            [(name: "accept", value: "application/json")]
            + GatewayService.headers(registration: registration)
        if let wait {
            let seconds = min(max(0, wait), Self.pollWaitSecondsMax)
            headers.append((name: "prefer", value: "wait=\(seconds)"))
        }
        let request = GatewayRequest(
            target: target(since: since), headers: headers,
            responseBytesMax: GatewayService.pollBytesMax)
        let response = try await service.answer(to: request)
        let value = try GatewayService.value(of: response)
        guard let object = value.objectValue, let list = object["notifications"]?.arrayValue else {
            throw .unreadable("a poll's response has no notifications")
        }
        let texts = list.compactMap(\.stringValue)
        guard texts.count == list.count else {
            throw .unreadable("a poll's notifications are not all strings")
        }
        return Poll(
            opening: Opening(response.head), notifications: texts,
            cursor: object["cursor"]?.stringValue.flatMap { Cursor(text: $0) }, document: value)
    }

    private func target(since: String?) -> String {
        var query: [String] = []
        if let since { query.append("since=\(GatewayService.encoded(since))") }
        if let kind { query.append("kind=\(GatewayService.encoded(kind))") }
        let path = "\(service.base(ofClient: client))/reloads"
        return query.isEmpty ? path : "\(path)?\(query.joined(separator: "&"))"
    }

    /// Returns the body of an error response, up to the limit.
    private func start(of body: GatewayBody) async -> [UInt8] {
        var bytes: [UInt8] = []
        var pieces = body.makeAsyncIterator()
        while bytes.count < GatewayService.problemBytesMax,
            let piece = try? await pieces.next()
        {
            bytes += piece
        }
        return bytes
    }
}
