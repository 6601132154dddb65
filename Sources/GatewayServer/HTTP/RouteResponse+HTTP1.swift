import NIOCore
import NIOHTTP1

extension RouteResponse {
    /// Returns the response as HTTP/1.1 (RFC 9112 section 4), framed by its length: its head with
    /// at most `bodyBytesMax` of its body, and the rest of the body, if there is any.
    func http1(bodyBytesMax: Int) -> (beginning: ByteBuffer, rest: ByteBuffer?) {
        let length = contentLength
        var rest = head.status.mayHaveResponseBody ? body : nil
        let count = rest?.readableBytes ?? 0
        var bytes = ByteBuffer()
        bytes.reserveCapacity(512 + min(count, bodyBytesMax))
        head.write(to: &bytes)
        if let length {
            bytes.writeString("Content-Length: ")
            bytes.writeString(String(length))
            bytes.writeString("\r\n")
        }
        bytes.writeString("\r\n")
        if var first = rest?.readSlice(length: min(count, bodyBytesMax)) {
            bytes.writeBuffer(&first)
        }
        return (bytes, count > bodyBytesMax ? rest : nil)
    }

    /// Asks the peer to send its body.
    static let http1Continue = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
}

extension HTTPResponseHead {
    /// Returns the head of a response whose body comes in pieces, in HTTP/1.1's chunked coding or
    /// up to the end of the connection.
    func http1(isChunked: Bool) -> ByteBuffer {
        var bytes = ByteBuffer()
        write(to: &bytes)
        bytes.writeString(isChunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n")
        return bytes
    }

    /// Writes the status line and the fields.
    fileprivate func write(to bytes: inout ByteBuffer) {
        bytes.writeString("HTTP/1.1 ")
        bytes.writeString(String(status.code))
        bytes.writeString(" ")
        bytes.writeString(status.reasonPhrase)
        bytes.writeString("\r\n")
        for (name, value) in headers {
            bytes.writeString(name)
            bytes.writeString(": ")
            bytes.writeString(value)
            bytes.writeString("\r\n")
        }
    }
}
