import GatewayTLS
import NIOCore
import NIOHTTP2

/// The header of an HTTP/2 frame (RFC 9113 section 4.1).
private struct FrameHeader {
    static let bytes = 9
    static let (headers, reset, settings, goAway) = (UInt8(1), UInt8(3), UInt8(4), UInt8(7))

    let type: UInt8
    let isAcknowledgement: Bool
    let stream: UInt32
    let payloadBytes: Int
    var frameBytes: Int { Self.bytes + payloadBytes }

    /// `nil` if the buffer does not hold all of it.
    init?(in buffer: ByteBuffer, at index: Int) {
        guard let begin = buffer.getInteger(at: index, as: UInt32.self),
            let flags = buffer.getInteger(at: index + 4, as: UInt8.self),
            let stream = buffer.getInteger(at: index + 5, as: UInt32.self)
        else { return nil }
        type = UInt8(truncatingIfNeeded: begin)
        payloadBytes = Int(begin >> 8)
        isAcknowledgement = type == Self.settings && flags & 1 == 1 && payloadBytes == 0
        // The highest bit is reserved.
        self.stream = stream & 0x7FFF_FFFF
    }
}

/// Edits the frames of an HTTP/2 client before they reach NIO's handler.
///
/// It drops resets of closed streams, which mean nothing (RFC 9113 section 5.1). NIO counts each as
/// part of an attack, and no setting exempts them. libcurl 7.88 (Debian 12) sends one for each
/// response without a body: more than 333 requests/s on a connection would exceed the limit of
/// 1,000 resets in 3 s. Resets of open streams pass.
///
/// A client may open more than 100 streams before it reads our settings. NIO ends its connection
/// then, unless it has the client's acknowledgement: this handler passes one on before the first
/// request, and drops the client's own.
final class HTTP2ClientFrames: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private enum Acknowledgement { case awaited, early, done }

    /// The length of a client's connection preface (RFC 9113 section 3.4).
    private static let prefaceBytes = 24

    /// Whether a stream was open before.
    private let isOver: (UInt32) -> Bool
    /// The remaining bytes of the preface, or of a frame's payload.
    private var bytesToPass = prefaceBytes
    /// The beginning of a header, or of a late reset, that continues in the next piece.
    private var begun = ByteBuffer()
    private var acknowledgement = Acknowledgement.awaited

    init(isOver: @escaping (UInt32) -> Bool) { self.isOver = isOver }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var input = unwrapInboundIn(data)
        if begun.readableBytes > 0 {
            begun.writeBuffer(&input)
            swap(&begun, &input)
        }
        var index = input.readerIndex
        var kept = index
        func forward() {
            if kept < index, let slice = input.getSlice(at: kept, length: index - kept) {
                context.fireChannelRead(wrapInboundOut(slice))
            }
            kept = index
        }
        while index < input.writerIndex {
            if bytesToPass > 0 {
                let passed = min(bytesToPass, input.writerIndex - index)
                bytesToPass -= passed
                index += passed
                continue
            }
            guard let frame = FrameHeader(in: input, at: index) else { break }
            if isDropped(frame) {
                guard index + frame.frameBytes <= input.writerIndex else { break }
                forward()
                index += frame.frameBytes
                kept = index
            } else {
                if frame.type == FrameHeader.headers, acknowledgement == .awaited {
                    acknowledgement = .early
                    forward()
                    let frame: [UInt8] = [0, 0, 0, FrameHeader.settings, 1, 0, 0, 0, 0]
                    context.fireChannelRead(wrapInboundOut(ByteBuffer(bytes: frame)))
                }
                index += FrameHeader.bytes
                bytesToPass = frame.payloadBytes
            }
            if frame.isAcknowledgement { acknowledgement = .done }
        }
        forward()
        begun = input.getSlice(at: index, length: input.writerIndex - index) ?? ByteBuffer()
    }

    private func isDropped(_ frame: FrameHeader) -> Bool {
        frame.isAcknowledgement && acknowledgement == .early
            || frame.type == FrameHeader.reset && frame.payloadBytes == 4 && isOver(frame.stream)
    }
}

/// Edits the frames of NIO's HTTP/2 handler before they are sent.
///
/// It lowers the number of streams in the first setting to the limit of a client. NIO's own limit
/// is far above that, because NIO ends a connection that exceeds it; `HTTP2ConnectionEnd` refuses
/// the excess.
///
/// When the peer violated the protocol, NIO sends GOAWAY and does not close. This handler puts the
/// newest request into the GOAWAY, so that the client knows what was not processed (RFC 9113
/// section 6.8), and closes the connection. Errors of one stream only reset that stream.
final class HTTP2ServerFrames: ChannelOutboundHandler {
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    private let end: HTTP2ConnectionEnd
    private let report: (PeerViolation, String) -> Void
    private var (hasSettings, hasFailed) = (false, false)

    init(_ end: HTTP2ConnectionEnd, report: @escaping (PeerViolation, String) -> Void) {
        (self.end, self.report) = (end, report)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        // The bodies of responses pass here, too, apart from the headers of their frames.
        guard case .byteBuffer(var frame) = unwrapOutboundIn(data),
            let header = FrameHeader(in: frame, at: frame.readerIndex),
            header.frameBytes == frame.readableBytes
        else { return context.write(data, promise: promise) }
        let payload = frame.readerIndex + FrameHeader.bytes
        let errorCode = frame.getInteger(at: payload + 4, as: UInt32.self) ?? 0
        if header.type == FrameHeader.settings, !hasSettings {
            hasSettings = true
            // The value follows a name of two bytes.
            frame.setInteger(UInt32(end.settings.concurrentRequestsMax), at: payload + 2)
        } else if header.type == FrameHeader.goAway, errorCode != 0 {
            hasFailed = true
            frame.setInteger(Int32(end.newestStream), at: payload)
            let error = HTTP2ErrorCode(networkCode: Int(errorCode))
            report(error == .enhanceYourCalm ? .http2Flood : .http2Protocol, "\(error)")
        }
        context.write(wrapOutboundOut(.byteBuffer(frame)), promise: promise)
    }

    func flush(context: ChannelHandlerContext) {
        context.flush()
        if hasFailed { context.close(promise: nil) }
    }
}
