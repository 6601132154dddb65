import NIOCore
import NIOHTTP1

extension GatewayAnswer {
    /// The answer as HTTP/1.1 (RFC 9112 section 4), framed by its length.
    var http1: [UInt8] {
        var bytes = Self.http1(head)
        let count = body?.readableBytes ?? 0
        bytes.reserveCapacity(bytes.count + 32 + count)
        // What may have no body has no length either (RFC 9110 section 8.6).
        if head.status.mayHaveResponseBody {
            bytes.append("Content-Length: ")
            bytes.append(String(count))
            bytes.append("\r\n")
        }
        bytes.append("\r\n")
        if head.status.mayHaveResponseBody, let body {
            bytes.append(contentsOf: body.readableBytesView)
        }
        return bytes
    }

    /// Tells the peer to send its body.
    static let http1Continue = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

    /// Status line and fields.
    private static func http1(_ head: HTTPResponseHead) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(512)
        bytes.append("HTTP/1.1 ")
        bytes.append(String(head.status.code))
        bytes.append(" ")
        bytes.append(head.status.reasonPhrase)
        bytes.append("\r\n")
        for (name, value) in head.headers {
            bytes.append(name)
            bytes.append(": ")
            bytes.append(value)
            bytes.append("\r\n")
        }
        return bytes
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ text: String) {
        var text = text
        // Sound: the pointer is read within the closure that lends it.
        text.withUTF8 { append(contentsOf: $0) }
    }
}
