import NIOCore

/// The result of passing bytes to a stream.
package enum SinkResult {
    /// The bytes were accepted, and more may follow.
    case sent
    /// The bytes were accepted, but no more fit until the sink reports that it drained.
    case full
    /// Nothing was accepted: the connection is gone.
    case gone
}

/// The receiver of one open stream without its own TLS connection: an HTTP/2 stream, or a
/// long-poll. Used on its event loop only.
package protocol EventSink: AnyObject {
    func send(_ blocks: ByteBuffer) -> SinkResult
    /// Ends the stream gracefully, after `farewell` if there is one.
    func end(_ farewell: ByteBuffer?)
    /// Ends the stream because a newer one of its client has taken its place.
    func endReplaced(_ farewell: ByteBuffer)
}

extension EventSink {
    package func endReplaced(_ farewell: ByteBuffer) { end(farewell) }
}

/// Blocks of an event stream, prepared once for all their recipients.
final class Frame {
    /// The blocks as one chunk of HTTP/1.1's chunked coding.
    let chunk: [UInt8]
    /// The blocks alone, for HTTP/2.
    private(set) lazy var blocks = ByteBuffer(bytes: chunk[content])
    private let content: Range<Int>

    init(_ blocks: [UInt8]) {
        (chunk, content) = ChunkedCoding.chunk(of: blocks)
    }
}

/// HTTP/1.1's chunked transfer coding (RFC 9112 section 7.1).
package enum ChunkedCoding {
    /// Ends a message.
    package static let last = Array("0\r\n\r\n".utf8)

    /// Encodes `content`, which is not empty, as one chunk; also returns the range of the content
    /// in it.
    package static func chunk(of content: [UInt8]) -> (bytes: [UInt8], content: Range<Int>) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(content.count + 16)
        bytes.append(contentsOf: String(content.count, radix: 16).utf8)
        bytes.append(contentsOf: "\r\n".utf8)
        let start = bytes.count
        bytes.append(contentsOf: content)
        bytes.append(contentsOf: "\r\n".utf8)
        return (bytes, start..<start + content.count)
    }
}
