import NIOCore

/// What became of bytes given to a stream.
enum SinkResult {
    /// They are on their way and more may follow.
    case sent
    /// They are on their way, but nothing more fits until the sink reports that it drained.
    case full
    /// Nothing was taken: the connection is gone.
    case gone
}

/// Where the bytes of one held-open stream go. Used on its event loop only.
protocol EventSink: AnyObject {
    /// Sends frames. `frames` is what to say; the sink adds what its protocol needs around it.
    func send(_ frames: FramedBytes) -> SinkResult
    /// Ends the stream in an orderly way, after `farewell` if there is one.
    func end(_ farewell: FramedBytes?)
}

/// Blocks of an event stream, prepared once for every protocol that carries them.
final class FramedBytes {
    /// The blocks.
    let blocks: [UInt8]
    /// The blocks as one chunk of HTTP/1.1's chunked coding (RFC 9112 section 7.1).
    let chunk: [UInt8]
    /// The blocks as a buffer that every HTTP/2 stream shares.
    private(set) lazy var buffer = ByteBuffer(bytes: blocks)

    init(_ blocks: [UInt8]) {
        self.blocks = blocks
        chunk = Self.chunk(of: blocks)
    }

    /// Several frames as one, for a stream that gets them together.
    init(joining frames: [FramedBytes]) {
        blocks = frames.flatMap(\.blocks)
        chunk = Self.chunk(of: blocks)
    }

    private static func chunk(of blocks: [UInt8]) -> [UInt8] {
        var chunk: [UInt8] = []
        chunk.reserveCapacity(blocks.count + 16)
        chunk.append(contentsOf: String(blocks.count, radix: 16).utf8)
        chunk.append(contentsOf: "\r\n".utf8)
        chunk.append(contentsOf: blocks)
        chunk.append(contentsOf: "\r\n".utf8)
        return chunk
    }
}
