import HTTPTypes
import WidgetModel

/// How the answer to an admitted stream begins.
struct StreamHead {
    /// The head.
    let response: HTTPResponse
    /// The first blocks of the event stream.
    let firstBlocks: [UInt8]

    init(_ admission: StreamAdmission, _ admitted: StreamAdmission.Admitted) {
        var response = HTTPResponse(status: .ok)
        response.headerFields[.contentType] = EventStreamEncoder.mediaType
        response.headerFields[.cacheControl] = "no-store, no-transform"
        response.headerFields[.accelBuffering] = "no"
        response.headerFields[.timelineCursor] = admission.resumedCursor(admitted.point)
        response.headerFields[.date] = httpDate(admission.desk.wallSeconds())
        self.response = response
        firstBlocks = EventStreamEncoder.retry(
            milliseconds: admission.streamSettings.retryMilliseconds)
    }

    /// Both as HTTP/1.1 (RFC 9112), the blocks as the first chunk.
    var http1: [UInt8] {
        var bytes = Array("HTTP/1.1 200 OK\r\n".utf8)
        bytes.reserveCapacity(512)
        for field in response.headerFields {
            bytes.append(contentsOf: field.name.rawName.utf8)
            bytes.append(contentsOf: ": ".utf8)
            bytes.append(contentsOf: field.value.utf8)
            bytes.append(contentsOf: "\r\n".utf8)
        }
        bytes.append(contentsOf: "Transfer-Encoding: chunked\r\n\r\n".utf8)
        bytes.append(contentsOf: ChunkedCoding.chunk(of: firstBlocks).bytes)
        return bytes
    }
}
