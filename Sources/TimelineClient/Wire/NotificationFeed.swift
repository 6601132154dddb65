import WidgetModel

/// What the gateway tells one client, by stream or by poll.
package struct NotificationFeed: Sendable {
    /// Longest event of a stream, bytes: a notification is far below it.
    static let eventBytesMax = 64 * 1024
    /// Longest time a poll asks the gateway to wait, seconds: below the silence a connection
    /// takes for a dead peer.
    package static let pollWaitSecondsMax = 30

    private let service: GatewayService
    private let client: String
    private let kind: String?
    private let registration: String?

    /// A feed.
    ///
    /// - Parameters:
    ///   - kind: Only what concerns this widget kind; `nil` for all.
    ///   - registration: The digest of the registration that the client believes in force.
    package init(
        service: GatewayService, client: String, kind: String? = nil, registration: String? = nil
    ) {
        self.service = service
        self.client = client
        self.kind = kind
        self.registration = registration
    }

    /// Where the gateway really resumed, and its clock.
    package struct Opening: Sendable {
        /// `Timeline-Cursor`; `nil` when it is missing or not of this gateway's form.
        package let resumedFrom: Cursor?
        /// `Date`.
        package let date: String?

        init(_ head: GatewayResponseHead) {
            resumedFrom = head["timeline-cursor"].flatMap { Cursor(text: $0) }
            date = head["date"]
        }
    }

    /// One thing told, in the order told.
    package enum Element: Sendable, Equatable {
        /// A notification in the compact form, not yet verified.
        case notification(String)
        /// Everything up to here that concerns the client has been told.
        case moved(Cursor)
        /// How long to wait before reconnecting.
        case retry(Duration)
    }

    /// A stream that is open.
    package struct Stream: Sendable {
        /// How it was answered.
        package let opening: Opening
        private let body: GatewayBody

        init(opening: Opening, body: GatewayBody) {
            self.opening = opening
            self.body = body
        }

        /// Hands every element to `receive` until it returns `false` or the stream ends.
        ///
        /// - Throws: ``GatewayFailure`` when the stream breaks off or cannot be read.
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
                    // An id that is no cursor of ours moves nothing: asked again, not lost.
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

    /// What a poll is answered with.
    package struct Poll: Sendable {
        /// How it was answered.
        package let opening: Opening
        /// The notifications in the compact form, not yet verified.
        package let notifications: [String]
        /// With these applied the client is here; `nil` when it is not of this gateway's form.
        package let cursor: Cursor?
        /// The whole answer.
        package let document: JSONValue
    }

    /// Asks what is stale since a cursor.
    ///
    /// - Parameter wait: How many seconds the gateway may wait for something to become stale;
    ///   `nil` for an answer at once.
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
            throw .unreadable("a poll's answer has no notifications")
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

    /// The body of a refusal, as far as it is read.
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
