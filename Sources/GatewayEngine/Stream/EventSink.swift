import NIOCore

/// The result of giving bytes to a stream.
package enum SinkResult {
    /// They are on their way and more may follow.
    case sent
    /// They are on their way, but nothing more fits until the sink reports that it drained.
    case full
    /// Nothing was taken: the connection is gone.
    case gone
}

/// The receiver of one held-open stream that has no TLS connection of its own: an HTTP/2 stream, or
/// a long-poll. Used on its event loop only.
package protocol EventSink: AnyObject {
    /// Sends blocks of the event stream.
    func send(_ blocks: ByteBuffer) -> SinkResult
    /// Ends the stream in an orderly way, after `farewell` if there is one.
    func end(_ farewell: ByteBuffer?)
}

/// Blocks of an event stream, prepared once for everyone who gets them.
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

    /// `content`, not empty, as one chunk, and where in it the content lies.
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
