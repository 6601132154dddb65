import GatewayEngine
import NIOCore

/// Drops resets of closed HTTP/2 streams, which mean nothing (RFC 9113 section 5.1). It is placed
/// before NIO's HTTP/2 handler, which counts every reset as part of an attack, and gives up a
/// connection that has too many of them, with all requests in flight.
///
/// libcurl (7.88, as of Debian 12) sends one for each response without a body, such as that to an
/// acknowledgement. Resets of open streams are still counted.
final class HTTP2LateResets: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The length of a client's connection preface (RFC 9113 section 3.4).
    private static let prefaceBytes = 24
    /// The size of a frame's header (RFC 9113 section 4.1).
    private static let headerBytes = 9
    private static let resetType: UInt8 = 3
    private static let resetPayloadBytes = 4

    /// Whether a stream was open before.
    private let isOver: (UInt32) -> Bool
    /// The remaining bytes of the preface, or of a frame's payload.
    private var bytesToPass = prefaceBytes
    /// The beginning of a header that continues in the next piece.
    private var headerBegun: [UInt8] = []

    init(isOver: @escaping (UInt32) -> Bool) { self.isOver = isOver }

    /// Forwards the piece without the late resets that it contains completely. A reset split
    /// between two pieces is forwarded as well: nothing waits here.
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let piece = unwrapInboundIn(data)
        var index = piece.readerIndex
        var kept = index
        while index < piece.writerIndex {
            let left = piece.writerIndex - index
            if bytesToPass > 0 {
                let passed = min(bytesToPass, left)
                bytesToPass -= passed
                index += passed
            } else if headerBegun.isEmpty, left >= Self.headerBytes {
                let length = Self.length(in: piece, at: index)
                let end = index + Self.headerBytes + length
                if end <= piece.writerIndex, isLateReset(piece, at: index, length: length) {
                    forward(piece, kept..<index, context)
                    index = end
                    kept = end
                } else {
                    index += Self.headerBytes
                    bytesToPass = length
                }
            } else {
                headerBegun.append(piece.getInteger(at: index) ?? 0)
                index += 1
                guard headerBegun.count == Self.headerBytes else { continue }
                bytesToPass = Self.length(in: ByteBuffer(bytes: headerBegun), at: 0)
                headerBegun.removeAll()
            }
        }
        forward(piece, kept..<piece.writerIndex, context)
    }

    private func isLateReset(_ piece: ByteBuffer, at index: Int, length: Int) -> Bool {
        guard length == Self.resetPayloadBytes,
            piece.getInteger(at: index + 3, as: UInt8.self) == Self.resetType,
            let stream = piece.getInteger(at: index + 5, as: UInt32.self)
        else { return false }
        // The highest bit is reserved.
        return isOver(stream & 0x7FFF_FFFF)
    }

    private func forward(
        _ piece: ByteBuffer, _ range: Range<Int>, _ context: ChannelHandlerContext
    ) {
        guard !range.isEmpty, let slice = piece.getSlice(at: range.lowerBound, length: range.count)
        else { return }
        context.fireChannelRead(wrapInboundOut(slice))
    }

    private static func length(in piece: ByteBuffer, at index: Int) -> Int {
        let high = piece.getInteger(at: index, as: UInt8.self) ?? 0
        let low = piece.getInteger(at: index + 1, as: UInt16.self) ?? 0
        return Int(high) << 16 | Int(low)
    }
}
