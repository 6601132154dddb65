import NIOCore
import NIOHPACK
import NIOHTTP2
import Synchronization

/// Converts the frames of one connection to requests, and decisions to frames.
final class APNsConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    /// The increment of the connection's flow-control window, bytes; sent each time half of it is
    /// used.
    private static let windowBytes = 1 << 30

    private let number: Int
    private let service: APNsService
    private let cut: ConnectionCut
    private let bypass: FrameBypass
    private var context: ChannelHandlerContext?
    private var partial: [HTTP2StreamID: PushRequest] = [:]
    /// The streams that were decided before the client ended them.
    private var overlong: Set<HTTP2StreamID> = []
    private var effects: [SimulatedAPNs.Effect] = []
    private var windowUsed = 0
    private var closesWhenWhole = false

    init(_ number: Int, service: APNsService, cut: ConnectionCut, bypass: FrameBypass) {
        (self.number, self.service) = (number, service)
        (self.cut, self.bypass) = (cut, bypass)
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelActive(context: ChannelHandlerContext) {
        write(.windowUpdate(windowSizeIncrement: Self.windowBytes), .rootStream, context)
        context.flush()
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        service.closed(number)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is NIOHTTP2Errors.MaxStreamsViolation {
            service.state.withLock { $0.overdrew(number) }
        }
        // An error of a single stream is handled by resetting that stream.
        if !(error is NIOHTTP2Errors.StreamError) { context.close(promise: nil) }
    }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = Self.unwrapInboundIn(data)
        switch frame.payload {
        case .headers(let headers): take(headers, frame.streamID)
        case .data(let data): take(data, frame.streamID, context)
        case .rstStream:
            partial[frame.streamID] = nil
            overlong.remove(frame.streamID)
            service.state.withLock {
                $0.reset(stream: Int(frame.streamID), on: number, &effects)
            }
            performEffects()
        default: break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        context.flush()
        closeIfWhole()
        context.fireChannelReadComplete()
    }

    private func take(_ headers: HTTP2Frame.FramePayload.Headers, _ stream: HTTP2StreamID) {
        // Trailers are ignored by a push service.
        var request = partial.removeValue(forKey: stream) ?? PushRequest()
        if request.method.isEmpty {
            for (name, value, _) in headers.headers { request.take(name, value) }
        }
        if headers.endStream { decide(request, stream) } else { partial[stream] = request }
    }

    private func take(
        _ data: HTTP2Frame.FramePayload.Data, _ stream: HTTP2StreamID,
        _ context: ChannelHandlerContext
    ) {
        windowUsed += data.data.readableBytes + (data.paddingBytes.map { $0 + 1 } ?? 0)
        if windowUsed > Self.windowBytes / 2 {
            write(.windowUpdate(windowSizeIncrement: windowUsed), .rootStream, context)
            windowUsed = 0
        }
        if data.endStream { overlong.remove(stream) }
        guard var request = partial.removeValue(forKey: stream) else { return }
        if case .byteBuffer(let bytes) = data.data {
            request.take(body: bytes.readableBytesView, bytesMax: service.bodyBytesMax)
        }
        if data.endStream {
            decide(request, stream)
        } else if request.bodyBytes > service.bodyBytesMax {
            // The rest of the body would change nothing, and may never arrive.
            overlong.insert(stream)
            decide(request, stream)
        } else {
            partial[stream] = request
        }
    }

    private func decide(_ request: PushRequest, _ stream: HTTP2StreamID) {
        let moment = service.settings.clock()
        let decision = service.state.withLock {
            $0.requested(request, stream: Int(stream), on: number, at: moment, &effects)
        }
        if let decision { service.settings.onDecision?(decision, moment) }
        performEffects()
    }

    // MARK: Effects

    /// Performs orders that do not result from a request.
    func perform(_ effects: [SimulatedAPNs.Effect]) {
        self.effects += effects
        performEffects()
        context?.flush()
        closeIfWhole()
    }

    private func performEffects() {
        guard let context else { return effects.removeAll() }
        for effect in effects { perform(effect, context) }
        effects.removeAll(keepingCapacity: true)
    }

    private func perform(_ effect: SimulatedAPNs.Effect, _ context: ChannelHandlerContext) {
        switch effect {
        case .settings(let streamsMax):
            let setting = HTTP2Setting(parameter: .maxConcurrentStreams, value: streamsMax)
            write(.settings(.settings([setting])), .rootStream, context)
        case .answer(let stream, let answer, let id, let idField):
            write(answer, id: id, idField: idField, on: HTTP2StreamID(stream), context)
        case .reset(let stream, let isRefused):
            let stream = HTTP2StreamID(stream)
            overlong.remove(stream)
            write(.rstStream(isRefused ? .refusedStream : .internalError), stream, context)
        case .goAway(let lastStream, let reason):
            // Earlier frames must be sent first.
            context.flush()
            bypass.goAway(lastStream: lastStream, data: #"{"reason":"\#(reason)"}"#)
            partial = partial.filter { Int($0.key) <= lastStream }
        case .wait(let stream, let milliseconds):
            context.eventLoop.assumeIsolated().scheduleTask(
                in: .milliseconds(Int64(milliseconds))
            ) { self.waited(stream) }
        case .close:
            closesWhenWhole = true
        case .cut:
            cut.cut()
        }
    }

    private func waited(_ stream: Int) {
        service.state.withLock {
            $0.waited(stream, on: number, at: service.settings.clock(), &effects)
        }
        perform([])
    }

    private func write(
        _ answer: PushAnswer, id: PushID, idField: String, on stream: HTTP2StreamID,
        _ context: ChannelHandlerContext
    ) {
        let body = answer.body
        var fields = HPACKHeaders()
        fields.reserveCapacity(4)
        fields.add(name: ":status", value: answer.status == 200 ? "200" : String(answer.status))
        fields.add(name: idField, value: id.text, indexing: .nonIndexable)
        if let channelID = answer.channelID {
            fields.add(name: "apns-channel-id", value: channelID, indexing: .nonIndexable)
        }
        if let retryAfter = answer.retryAfter {
            fields.add(name: "retry-after", value: String(retryAfter))
        }
        if service.environment == .sandbox, answer.status == 200, answer.document == nil {
            fields.add(name: "apns-unique-id", value: id.other.text, indexing: .nonIndexable)
        }
        let headers = HTTP2Frame.FramePayload.Headers(headers: fields, endStream: body.isEmpty)
        write(.headers(headers), stream, context)
        if !body.isEmpty {
            let bytes = IOData.byteBuffer(ByteBuffer(string: body))
            write(.data(.init(data: bytes, endStream: true)), stream, context)
        }
        // Asks the client not to send the rest of its body (RFC 9113 section 8.1).
        guard overlong.remove(stream) != nil else { return }
        // Without this flush NIO would drop unsent parts of the response.
        context.flush()
        write(.rstStream(.noError), stream, context)
    }

    private func write(
        _ payload: HTTP2Frame.FramePayload, _ stream: HTTP2StreamID,
        _ context: ChannelHandlerContext
    ) {
        context.write(
            Self.wrapOutboundOut(HTTP2Frame(streamID: stream, payload: payload)), promise: nil)
    }

    private func closeIfWhole() {
        guard closesWhenWhole, partial.isEmpty, let context else { return }
        closesWhenWhole = false
        context.close(promise: nil)
    }
}
