import GatewayCore
import GatewayTLS
import NIOCore
import NIOHTTP1
import WidgetModel

/// The end of a pipeline: lets requests be answered in their turns, and keeps event streams.
///
/// An HTTP/1.1 connection whose request is an admitted event stream leaves its channel behind, with
/// all handlers: the event loop's shard writes to its socket. Of HTTP/2 the stream stays, and the
/// shard writes to it through this gate. Everything else, refused streams included, is for the
/// routes.
final class StreamGate: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        /// No request came yet. To `deciding` or `http` by the first one.
        case waiting
        /// An event stream was asked for and its shard is not there yet. To `stream` or `http`.
        case deciding
        /// Routes answer. To `deciding` when an event stream is asked for between requests.
        case http
        /// The shard writes, by HTTP/2. To `closed` with the stream.
        case stream(ShardLoop, StreamID)
        case closed
    }

    /// Parts of a request kept while its stream is decided about: a request for one has no body.
    private static let heldPartsMax = 16

    private let tls: TLSServerHandler
    private let isHTTP2: Bool
    /// When the head of the first request has to be there.
    private let requestDue: NIODeadline
    private let settings: ConnectionSettings
    private let admission: StreamAdmission
    private let open: OpenChannels
    /// The progress of all answers of the connection.
    private let progress: AnswerProgress
    private let onUnreadAnswer: @Sendable () -> Void
    private let responder: Responder
    private var state = State.waiting
    private var context: ChannelHandlerContext?
    /// Parts of the request that is being decided about.
    private var held: [HTTPServerRequestPart] = []
    /// The requests that routes answer, from the first one on.
    private var turns: RequestTurns?
    /// The client whose admitted stream waits until the answer before it has left.
    private var waitingForDrain: ClientKey?
    /// For the first request's head.
    private var requestTimer: Scheduled<Void>?
    private var isEnding = false

    init(
        tls: TLSServerHandler, isHTTP2: Bool, requestDue: NIODeadline,
        settings: ConnectionSettings, admission: StreamAdmission, open: OpenChannels,
        progress: AnswerProgress, onUnreadAnswer: @escaping @Sendable () -> Void,
        responder: Responder
    ) {
        self.tls = tls
        self.isHTTP2 = isHTTP2
        self.requestDue = requestDue
        self.settings = settings
        self.admission = admission
        self.open = open
        self.progress = progress
        self.onUnreadAnswer = onUnreadAnswer
        self.responder = responder
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
        turns?.leave()
        if case .stream(let shard, let id) = state { shard.close(id) }
        // Nothing drains any more.
        if let key = waitingForDrain { admission.registry.releaseStream(key) }
        waitingForDrain = nil
        state = .closed
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
            turns?.take(part)
            return
        }
        requestTimer?.cancel()
        requestTimer = nil
        let isIdle = turns?.isIdle ?? true
        if let problem = Self.problem(with: head, isHTTP2: isHTTP2, settings) {
            if isIdle {
                refuse(problem, context)
            } else {
                turns?.fail(HTTPParserError.invalidHeaderToken)
            }
            return
        }
        if isIdle, head.method == .GET,
            case let request = ReloadsRequest(head), request.wantsStream,
            let shard = admission.loops.shard(of: context.eventLoop),
            let admitted = admitted(request, context.channel),
            admission.admitStream(admitted.key)
        {
            state = .deciding
            held = [part]
            if let claims = admitted.newClaims {
                present(claims, admitted, on: shard, context.eventLoop)
            } else {
                openWhenReached(admitted, on: shard)
            }
        } else {
            passOn([part])
        }
    }

    /// Returns the stream a request asks for if nothing stands in its way; what does is for the route
    /// to say, which counts the request once more.
    private func admitted(
        _ request: ReloadsRequest, _ channel: any Channel
    ) -> StreamAdmission.Admitted? {
        let source = SourceAddress(channel.remoteAddress)
        do {
            try admission.requestLimits.admit(source)
            return try admission.admit(
                request, from: source, certificateURIs: { tls.peerCertificateURIs })
        } catch {
            return nil
        }
    }

    /// Opens a stream whose token vouches for other attributes than are in force, once they are.
    private func present(
        _ claims: [String: [String]], _ admitted: StreamAdmission.Admitted, on shard: ShardLoop,
        _ loop: any EventLoop
    ) {
        let sequencer = admission.sequencer
        let presented = loop.makePromise(of: ClientRecord.self)
        presented.completeWithTask { try await sequencer.present(claims, of: admitted.key) }
        presented.futureResult.assumeIsolated().whenComplete { result in
            switch result {
            case .success:
                self.openWhenReached(admitted, on: shard)
            case .failure:
                self.admission.registry.releaseStream(admitted.key)
                guard case .deciding = self.state else { return }
                // The route meets the same, and says what it is.
                let parts = self.held
                self.held = []
                self.passOn(parts)
            }
        }
    }

    private func openWhenReached(_ admitted: StreamAdmission.Admitted, on shard: ShardLoop) {
        shard.whenReached(admitted.head, in: admitted.cursor.epoch) {
            guard case .deciding = self.state else {
                self.admission.registry.releaseStream(admitted.key)
                return
            }
            self.open(admitted, on: shard)
        }
    }

    /// What is wrong with a request before anybody looks at what it asks for.
    static func problem(
        with head: HTTPRequestHead, isHTTP2: Bool, _ settings: ConnectionSettings
    ) -> ProblemDetails? {
        if head.headers.count > settings.headerFieldsMax { return Problem.headersTooLarge }
        var path = head.uri
        // Sound: the pointer is read within the closure that lends it.
        if !path.withUTF8({ $0.allSatisfy { $0 > 0x20 && $0 < 0x7F } }) {
            return Problem.malformed("The request target must be percent-encoded ASCII.")
        }
        let hosts = head.headers.values(FieldName.host)
        if hosts.first?.isEmpty ?? true {
            return Problem.malformed("The request has no Host (RFC 9112 section 3.2).")
        }
        if !isHTTP2, hosts.count > 1 {
            // Two servers could disagree on which.
            return Problem.malformed("The request has more than one Host (RFC 9112 section 3.2).")
        }
        return nil
    }

    /// Answers for everybody behind, and closes.
    private func refuse(_ problem: ProblemDetails, _ context: ChannelHandlerContext) {
        turns(context).refuse(problem)
        state = .closed
    }

    private func turns(_ context: ChannelHandlerContext) -> RequestTurns {
        if let turns { return turns }
        let made = RequestTurns(
            context, isHTTP2: isHTTP2, settings: settings, open: open, progress: progress,
            onUnreadAnswer: onUnreadAnswer, responder: responder)
        turns = made
        return made
    }

    /// Lets the routes have the request.
    private func passOn(_ parts: [HTTPServerRequestPart]) {
        guard let context else { return }
        state = .http
        let turns = turns(context)
        for part in parts {
            if case .head(let head) = part,
                head.headers.value(FieldName.expect)?.lowercased() == "100-continue"
            {
                // Whatever the handler thinks of the body, it reads or refuses it by itself.
                turns.demandBody()
            }
            turns.take(part)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if case .http = state { turns?.readComplete() }
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        if turns?.admitRead() ?? true { context.read() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if case .http = state {
            turns?.fail(error)
        } else if let parserError = error as? HTTPParserError {
            refuse(Problem.notHTTP(parserError), context)
        } else {
            context.fireErrorCaught(error)
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
        case (is ChannelShouldQuiesceEvent, .http):
            turns?.quiesce()
        case (ChannelEvent.inputClosed, .http):
            turns?.endInput()
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
            waitingForDrain = admitted.key
            tls.onDrained = {
                self.tls.onDrained = nil
                guard self.waitingForDrain != nil else { return }
                self.waitingForDrain = nil
                self.open(admitted, on: shard)
            }
            return
        }
        let id: StreamID
        do throws(ShardLoop.Failure) {
            id = try shard.open(admitted.opening) { carrier(admitted, from: $0, context) }
        } catch {
            admission.registry.releaseStream(admitted.key)
            switch (error, state) {
            case (_, .closed): return
            case (.refused, _):
                // Nothing was said yet: the route answers why.
                let parts = held
                held = []
                passOn(parts)
            case (.unavailable, _): close(context)
            }
            return
        }
        guard isHTTP2 else {
            // The connection is the shard's; the channel goes.
            if case .closed = state { return }
            return close(context)
        }
        if case .closed = state {
            shard.close(id)
            return
        }
        state = .stream(shard, id)
    }

    /// Leaves HTTP: begins the answer, or gives the connection away. `nil` when it is gone.
    private func carrier(
        _ admitted: StreamAdmission.Admitted, from point: ResumePoint,
        _ context: ChannelHandlerContext
    ) -> ShardLoop.Carrier? {
        held = []
        let head = StreamHead(admission, admitted, from: point)
        guard isHTTP2 else { return tls.detach().map { .connection($0, head: head.http1) } }
        // Before the state says stream: this is HTTP's last word.
        context.write(wrapOutboundOut(.head(head.response)), promise: nil)
        context.writeAndFlush(
            wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: head.firstBlocks)))), promise: nil)
        return .sink(self, wantsHeartbeat: true)
    }

    private func close(_ context: ChannelHandlerContext) {
        state = .closed
        isEnding = true
        context.close(promise: nil)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            if case .stream(let shard, let id) = state { shard.drained(id) }
            turns?.drained()
        }
        context.fireChannelWritabilityChanged()
    }
}

extension StreamGate: EventSink {
    func send(_ blocks: ByteBuffer) -> SinkResult {
        guard let context, !isEnding else { return .gone }
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(blocks))), promise: nil)
        return context.channel.isWritable ? .sent : .full
    }

    func end(_ farewell: ByteBuffer?) {
        guard let context, !isEnding else { return }
        if let farewell { _ = send(farewell) }
        isEnding = true
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}
