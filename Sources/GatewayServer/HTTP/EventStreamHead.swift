import GatewayCore
import GatewayEngine
import GatewayOperations
import NIOHTTP1
import WidgetModel

/// The beginning of the response to an admitted event stream.
struct EventStreamHead {
    private let cursor: String
    private let date: String
    /// The fields of ``CORSPolicy``.
    private let cors: HTTPHeaders
    let firstBlocks: [UInt8]

    /// Creates the head of a response to a client that resumes at `point`.
    init(
        _ admission: StreamAdmission, _ admitted: StreamAdmission.Admitted, from point: ResumePoint
    ) {
        cursor = admission.resumedCursor(point, in: admitted.cursor.epoch)
        date = admission.date.text
        cors = admission.cors.fields(for: admitted.origin)
        firstBlocks = EventStreamEncoder.retry(
            milliseconds: admission.streamSettings.retryMilliseconds)
    }

    /// The fields common to all responses.
    private static let fields: HTTPHeaders = [
        FieldName.contentType: EventStreamEncoder.mediaType,
        FieldName.cacheControl: "no-store, no-transform",
        FieldName.accelBuffering: "no",
    ]

    var response: HTTPResponseHead {
        var headers = headers
        headers.add(name: FieldName.date, value: date)
        headers.add(contentsOf: cors)
        return HTTPResponseHead(version: .http1_1, status: .ok, headers: headers)
    }

    /// The fields of the response; the port adds the common ones.
    fileprivate var headers: HTTPHeaders {
        var headers = Self.fields
        headers.add(name: FieldName.timelineCursor, value: cursor)
        return headers
    }

    /// Both parts as HTTP/1.1 (RFC 9112), the blocks as the first chunk. Written by hand, because a
    /// restarted gateway sends it to every client.
    var http1: [UInt8] {
        var bytes = Self.http1Start
        bytes.reserveCapacity(512)
        bytes.append(contentsOf: cursor.utf8)
        bytes.append(contentsOf: "\r\nDate: ".utf8)
        bytes.append(contentsOf: date.utf8)
        for (name, value) in cors { bytes.append(contentsOf: "\r\n\(name): \(value)".utf8) }
        bytes.append(contentsOf: "\r\n\r\n".utf8)
        bytes.append(contentsOf: ChunkedCoding.chunk(of: firstBlocks).bytes)
        return bytes
    }

    private static let http1Start: [UInt8] = {
        let lines = fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        return Array(
            "HTTP/1.1 200 OK\r\n\(lines)Transfer-Encoding: chunked\r\nTimeline-Cursor: ".utf8)
    }()
}

extension RouteResponse {
    /// Returns the response to `HEAD` for an event stream, whose length is unknown.
    static func head(of stream: EventStreamHead) -> RouteResponse {
        var response = RouteResponse(.ok, headers: stream.headers)
        response.content = .omitted(length: nil)
        return response
    }
}
