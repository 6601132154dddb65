import GatewayCore
import GatewayTLS
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import WidgetModel

/// Stands before Hummingbird: hands requests on, and keeps event streams.
///
/// An HTTP/1.1 connection whose request is an admitted event stream leaves its channel behind, with
/// all handlers and the task: the event loop's shard writes to its socket. Of HTTP/2 the stream
/// stays, and the shard writes to it through this gate. Everything else, refused streams included,
/// is Hummingbird's.
final class StreamGate: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private enum State {
        /// No request came yet. To `deciding` or `http` by the first one.
        case waiting
        /// An event stream was asked for and its shard is not there yet. To `stream` or `http`.
        case deciding
        /// Hummingbird answers. To `deciding` when an event stream is asked for between requests.
        case http
        /// The shard writes, by HTTP/2. To `closed` with the stream.
        case stream(ShardLoop, StreamID)
        case closed
    }

    /// Parts of a request kept while its stream is decided about: a request for one has no body.
    private static let heldPartsMax = 16

    let taken: EventLoopPromise<GatewayChannel.Taken>
    private let tls: TLSServerHandler
    private let isHTTP2: Bool
    /// When the head of the first request has to be there.
    private let requestDue: NIODeadline
    private let settings: ConnectionSettings
    private let admission: StreamAdmission
    private let logger: Logger
    private var state = State.waiting
    private var context: ChannelHandlerContext?
    /// Parts of the request that is being decided about.
    private var held: [HTTPRequestPart] = []
    private var responsesUnderWay = 0
    private var hasAsyncChannel = false
    /// For the first request's head, later for the body of the one under way.
    private var requestTimer: Scheduled<Void>?
    private var isEnding = false
    /// The request that Hummingbird has was received to its end.
    private var isRequestComplete = true
    /// What follows the requests under way is not HTTP: their answers are the connection's last.
    private var isBroken = false

    init(
        tls: TLSServerHandler, isHTTP2: Bool, requestDue: NIODeadline,
        settings: ConnectionSettings, admission: StreamAdmission, logger: Logger,
        taken: EventLoopPromise<GatewayChannel.Taken>
    ) {
        self.tls = tls
        self.isHTTP2 = isHTTP2
        self.requestDue = requestDue
        self.settings = settings
        self.admission = admission
        self.logger = logger
        self.taken = taken
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        requestTimer = context.eventLoop.assumeIsolated().scheduleTask(deadline: requestDue) {
            if case .waiting = self.state { context.close(promise: nil) }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        leave()
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    private func leave() {
        requestTimer?.cancel()
        if case .stream(let shard, let id) = state { shard.close(id) }
        if case .closed = state { return }
        state = .closed
        taken.fail(ChannelError.ioOnClosedChannel)
    }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch state {
        case .stream, .closed:
            // A reader has nothing to say once it holds a stream.
            return
        case .deciding:
            guard held.count < Self.heldPartsMax else {
                context.close(promise: nil)
                return
            }
            held.append(unwrapInboundIn(data))
            return
        case .waiting, .http:
            break
        }
        let part = unwrapInboundIn(data)
        guard case .head(let head) = part else {
            if case .end = part { requestCompleted() }
            context.fireChannelRead(data)
            return
        }
        requestTimer?.cancel()
        requestTimer = nil
        if let problem = problem(with: head), responsesUnderWay == 0 {
            refuse(problem, context)
            return
        }
        if responsesUnderWay == 0, head.method == .get,
            case let request = ReloadsRequest(head), request.wantsStream,
            let shard = admission.loops.shard(of: context.eventLoop),
            let admitted = try? admission.admit(
                request, certificateURIs: { tls.peerCertificateURIs }),
            admission.admitStream(admitted.key)
        {
            state = .deciding
            held = [part]
            shard.whenReached(admitted.head) {
                guard case .deciding = self.state else {
                    self.admission.registry.releaseStream(admitted.key)
                    return
                }
                self.open(admitted, on: shard)
            }
        } else {
            passOn([part])
        }
    }

    /// What is wrong with a request before anybody looks at what it asks for.
    private func problem(with head: HTTPRequest) -> ProblemDetails? {
        if head.headerFields.count > settings.headerFieldsMax { return Problem.headersTooLarge }
        var path = head.path ?? ""
        // Sound: the pointer is read within the closure that lends it.
        if !path.withUTF8({ $0.allSatisfy { $0 > 0x20 && $0 < 0x7F } }) {
            return Problem.malformed("The request target must be percent-encoded ASCII.")
        }
        if head.authority?.isEmpty ?? true {
            return Problem.malformed("The request has no Host (RFC 9112 section 3.2).")
        }
        return nil
    }

    /// Answers for everybody behind, and closes.
    private func refuse(_ problem: ProblemDetails, _ context: ChannelHandlerContext) {
        let body = ByteBuffer(bytes: problem.json.serialized)
        var response = HTTPResponse(status: .init(code: problem.status))
        response.headerFields[.contentType] = ProblemDetails.mediaType
        response.headerFields[.contentLength] = String(body.readableBytes)
        if !isHTTP2 { response.headerFields[.connection] = "close" }
        context.write(wrapOutboundOut(.head(response)), promise: nil)
        context.write(wrapOutboundOut(.body(body)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        state = .closed
        taken.fail(ChannelError.ioOnClosedChannel)
        isEnding = true
        context.close(promise: nil)
    }

    /// Lets Hummingbird have the request.
    private func passOn(_ parts: [HTTPRequestPart]) {
        guard let context else { return }
        state = .http
        if !hasAsyncChannel {
            hasAsyncChannel = true
            do {
                try context.pipeline.syncOperations.addHandler(
                    HTTPConnectionStateHandler(
                        idleTimeout: isHTTP2 ? nil : settings.idleTimeout, logger: logger))
                taken.succeed(
                    .http(
                        try NIOAsyncChannel(
                            wrappingChannelSynchronously: context.channel,
                            configuration: .init(isOutboundHalfClosureEnabled: !isHTTP2))))
            } catch {
                taken.fail(error)
                context.close(promise: nil)
                return
            }
        }
        for part in parts {
            if case .end = part { requestCompleted() }
            if case .head(let head) = part {
                responsesUnderWay += 1
                isRequestComplete = false
                if head.headerFields[.expect]?.lowercased() == "100-continue" {
                    // Whatever the handler thinks of the body, it reads or refuses it by itself.
                    let interim = HTTPResponse(status: .continue)
                    context.writeAndFlush(wrapOutboundOut(.head(interim)), promise: nil)
                }
            }
            context.fireChannelRead(wrapInboundOut(part))
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if case .http = state, !isRequestComplete, requestTimer == nil {
            requestTimer = context.eventLoop.assumeIsolated().scheduleTask(
                in: settings.requestTimeout
            ) {
                if !self.isRequestComplete { context.close(promise: nil) }
            }
        }
        context.fireChannelReadComplete()
    }

    private func requestCompleted() {
        isRequestComplete = true
        requestTimer?.cancel()
        requestTimer = nil
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        context.write(data, promise: promise)
        guard case .end = unwrapOutboundIn(data) else { return }
        responsesUnderWay -= 1
        if !isHTTP2, !isRequestComplete, responsesUnderWay == 0 {
            // What follows is the rest of a request that is answered: reading it to its end would
            // be the peer's to prolong.
            context.flush()
            isEnding = true
            context.close(promise: nil)
        } else if isBroken, responsesUnderWay == 0 {
            refuse(Problem.malformed("The request is not HTTP."), context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let parserError = error as? HTTPParserError else {
            context.fireErrorCaught(error)
            return
        }
        if responsesUnderWay > 0 {
            isBroken = true
            context.fireErrorCaught(error)
        } else {
            refuse(
                parserError == .headerOverflow
                    ? Problem.headersTooLarge : Problem.malformed("The request is not HTTP."),
                context)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch (event, state) {
        case (is ChannelShouldQuiesceEvent, .waiting):
            context.close(promise: nil)
        case (is ChannelShouldQuiesceEvent, .stream), (is ChannelShouldQuiesceEvent, .deciding):
            // The shard ends its streams itself, each with a word on when to come back.
            break
        case (ChannelEvent.inputClosed, .deciding) where !isHTTP2,
            (ChannelEvent.inputClosed, .waiting):
            isEnding = true
            context.close(promise: nil)
        default:
            context.fireUserInboundEventTriggered(event)
        }
    }

    // MARK: Streams

    private func open(_ admitted: StreamAdmission.Admitted, on shard: ShardLoop) {
        guard let context else {
            admission.registry.releaseStream(admitted.key)
            return
        }
        if !isHTTP2, !tls.isDetachable {
            // The answer before is still on its way.
            tls.onDrained = {
                self.tls.onDrained = nil
                if case .deciding = self.state {
                    self.open(admitted, on: shard)
                } else {
                    self.admission.registry.releaseStream(admitted.key)
                }
            }
            return
        }
        let head = StreamHead(admission, admitted)
        held = []
        if isHTTP2 {
            // Before the state says stream: this is HTTP's last word.
            context.write(wrapOutboundOut(.head(head.response)), promise: nil)
            context.writeAndFlush(
                wrapOutboundOut(.body(ByteBuffer(bytes: head.firstBlocks))), promise: nil)
        }
        let carrier =
            isHTTP2
            ? ShardLoop.Carrier.sink(self, wantsHeartbeat: true)
            : tls.detach().map { .connection($0, head: head.http1) }
        let id = carrier.flatMap { shard.open(admitted.opening, on: $0) }
        if id == nil { admission.registry.releaseStream(admitted.key) }
        guard let id, isHTTP2 else {
            // The connection is the shard's, or nobody's; the channel goes either way.
            if case .closed = state { return }
            state = .closed
            taken.succeed(.stream)
            isEnding = true
            context.close(promise: nil)
            return
        }
        if case .closed = state {
            shard.close(id)
            return
        }
        state = .stream(shard, id)
        taken.succeed(.stream)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable, case .stream(let shard, let id) = state {
            shard.drained(id)
        }
        context.fireChannelWritabilityChanged()
    }
}

extension StreamGate: EventSink {
    func send(_ blocks: ByteBuffer) -> SinkResult {
        guard let context, !isEnding else { return .gone }
        context.writeAndFlush(wrapOutboundOut(.body(blocks)), promise: nil)
        return context.channel.isWritable ? .sent : .full
    }

    func end(_ farewell: ByteBuffer?) {
        guard let context, !isEnding else { return }
        if let farewell { _ = send(farewell) }
        isEnding = true
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}
