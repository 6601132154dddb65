import GatewayCore
import GatewayEngine
import GatewayTLS
import NIOCore
import NIOHTTP1
import NIOHTTP2
import WidgetModel

/// The last handler of an HTTP/1.1 connection, or of an HTTP/2 stream: performs the actions of its
/// `HTTPConnectionMachine`.
///
/// An HTTP/1.1 connection whose request is an admitted event stream leaves its channel, with all
/// handlers: the event loop's shard writes to its socket. An HTTP/2 stream keeps its channel, and
/// the shard writes to it through this handler. Everything else, including declined event streams,
/// goes to the routes.
///
/// Bound to its channel's event loop: all members are used on that loop only.
final class HTTPConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    let setup: HTTPPipeline
    /// The TLS handler of the connection; `nil` without TLS.
    let tls: TLSServerHandler?
    let isHTTP2: Bool
    /// The deadline for the head of the first request.
    private let requestDue: NIODeadline
    let progress: ConnectionProgress
    var machine: HTTPConnectionMachine
    /// `nil` once the channel is gone.
    private(set) var context: ChannelHandlerContext?
    private lazy var writer = ResponseWriter(
        isHTTP2: isHTTP2, timeout: setup.settings.answerTimeout, connection: progress,
        onStall: { self.giveUpResponse(connectionToo: $0) },
        onWritten: { self.responseWritten() })
    /// Receives the rest of the body of the request whose route is working.
    private var body: RequestBody.Pieces.Source?
    /// The task that requests the pieces of the response's body.
    private var pieces: Task<Void, Never>?
    private var requestTimer: Scheduled<Void>?
    private var idleTimer: Scheduled<Void>?
    /// The event stream that the shard writes through this handler (HTTP/2).
    var stream: (shard: ShardLoop, id: StreamID)?
    /// The outcome of redeeming the ticket of the request that is being admitted, for its route.
    var redeemed: Result<String, any Error>?
    private var isPeerGone = false
    private var onPeerGone: (() -> Void)?

    /// - Parameter progress: The progress of all responses and bodies of the connection.
    init(
        _ setup: HTTPPipeline, tls: TLSServerHandler?, isHTTP2: Bool, requestDue: NIODeadline,
        progress: ConnectionProgress
    ) {
        self.setup = setup
        self.tls = tls
        self.isHTTP2 = isHTTP2
        self.requestDue = requestDue
        self.progress = progress
        machine = HTTPConnectionMachine(
            isHTTP2: isHTTP2, offersStreams: setup.admission != nil && tls != nil,
            settings: setup.settings)
    }

    // MARK: Events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        setup.newest?.add(self)
        startRequestTimer(at: requestDue)
    }

    func handlerRemoved(context: ChannelHandlerContext) { leave() }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    private func leave() {
        setup.newest?.remove(self)
        requestTimer?.cancel()
        idleTimer?.cancel()
        pieces?.cancel()
        writer.stop()
        perform(machine.channelClosed())
        peerWent()
        closeStream()
        context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let (part, now) = (unwrapInboundIn(data), context.eventLoop.now)
        if case .body(let bytes) = part {
            progress.received(bytes.readableBytes, now: now, setup.settings)
        }
        perform(machine.received(part, now: now))
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        perform(machine.readCompleted(now: context.eventLoop.now))
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        if machine.readRequested() { context.read() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        let isWritable = context.channel.isWritable
        if isWritable, let stream { stream.shard.drained(stream.id) }
        perform(machine.writabilityChanged(to: isWritable, now: context.eventLoop.now))
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A wider window was for a stream whose end had just arrived: see `permit`.
        if error is NIOHTTP2Errors.BadStreamStateTransition { return }
        perform(machine.failed(error))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent: perform(machine.quiesce())
        case ChannelEvent.inputClosed:
            perform(machine.inputClosed())
            // In HTTP/2 only the request has ended.
            if !isHTTP2 { peerWent() }
        case is HTTP2InputClosed:
            perform(machine.connectionInputClosed())
            peerWent()
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    /// Calls `body` once, when the peer has ended its side of the connection or its channel is gone;
    /// at once if that is so already. It takes the place of an earlier one.
    func whenPeerGoes(_ body: @escaping () -> Void) {
        onPeerGone = body
        if isPeerGone { peerWent() }
    }

    private func peerWent() {
        isPeerGone = true
        let body = onPeerGone
        onPeerGone = nil
        body?()
    }

    /// Whether a route is working, or its response is being written.
    var isResponding: Bool { machine.isResponding }

    /// Ends the connection at once.
    func close() { perform(machine.abort()) }

    /// Records that the route wants more of its body, or no more at all.
    func bodyWanted() {
        guard let context else { return }
        perform(machine.bodyWanted(now: context.eventLoop.now))
    }

    /// Permits the peer to send more of the body before it is read: see `BodyDemand`.
    func permit(_ count: Int) {
        if isHTTP2, body != nil { sendFrame(.windowUpdate(windowSizeIncrement: count)) }
    }

    private func sendFrame(_ payload: HTTP2Frame.FramePayload) {
        guard let channel = context?.channel, let connection = channel.parent,
            let id = try? channel.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID)
        else { return }
        connection.writeAndFlush(HTTP2Frame(streamID: id, payload: payload), promise: nil)
    }

    // MARK: Actions

    func perform(_ actions: [HTTPConnectionMachine.Action]) {
        for action in actions { perform(action) }
    }

    private func perform(_ action: HTTPConnectionMachine.Action) {
        switch action {
        case .admitStream(let request): admit(request)
        case .sendContinue: sendContinue()
        case .respond(let request, let isWhole): respond(to: request, isWhole: isWhole)
        case .forwardBody(let bytes):
            guard case .stopProducing? = body?.yield(bytes), let context else { return }
            machine.bodyFilled(now: context.eventLoop.now)
        case .endBody(let failure):
            if let slow = failure?.error as? ProblemDetails { tls?.report(.body, slow.title) }
            let ended = body
            body = nil
            if let failure { ended?.finish(failure.error) } else { ended?.finish() }
        case .cancelPieces: pieces?.cancel()
        case .refuse(let problem, let omitsBody): refuse(problem, omitsBody: omitsBody)
        case .close: context?.close(promise: nil)
        case .linger:
            if !isHTTP2 { tls?.lingersUntil = NIODeadline.now() + setup.settings.lingerTimeout }
            context?.close(promise: nil)
        case .resetStream: if !writer.isWriting { sendFrame(.rstStream(.noError)) }
        case .closeOutput: context?.close(mode: .output, promise: nil)
        case .read: context?.read()
        case .startRequestTimer(let due): startRequestTimer(at: due)
        case .cancelRequestTimer:
            requestTimer?.cancel()
            requestTimer = nil
        case .startIdleTimer(let due): startIdleTimer(at: due)
        }
    }

    private func startRequestTimer(at due: NIODeadline) {
        guard requestTimer == nil, let loop = context?.eventLoop else { return }
        requestTimer = loop.assumeIsolated().scheduleTask(deadline: due) {
            self.requestTimer = nil
            let due = self.progress.bodiesDue
            self.perform(self.machine.requestTimedOut(now: loop.now, bodiesDue: due))
        }
    }

    private func startIdleTimer(at due: NIODeadline) {
        guard idleTimer == nil, let loop = context?.eventLoop else { return }
        idleTimer = loop.assumeIsolated().scheduleTask(deadline: due) {
            self.idleTimer = nil
            let isWriting = self.writer.isWriting
            self.perform(self.machine.idleTimedOut(now: loop.now, isWriting: isWriting))
        }
    }

    private func sendContinue() {
        guard let context else { return }
        if isHTTP2 {
            let head = HTTPResponseHead(version: .http1_1, status: .continue)
            context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
        } else {
            // No handler between this one and TLS inspects HTTP/1.1 output.
            let bytes = ByteBuffer(bytes: RouteResponse.http1Continue)
            context.writeAndFlush(NIOAny(IOData.byteBuffer(bytes)), promise: nil)
        }
    }

    // MARK: Responses

    private func respond(to request: HTTPConnectionMachine.Request, isWhole: Bool) {
        guard let context else { return }
        let (channel, loop) = (context.channel, context.eventLoop)
        var body = RequestBody.whole(request.body)
        if !isWhole {
            let demand = BodyDemand(self, on: loop)
            let pieces = RequestBody.Pieces.makeSequence(
                elementType: ByteBuffer.self, failureType: (any Error).self,
                backPressureStrategy: .init(lowWatermark: 2, highWatermark: 4),
                finishOnDeinit: true, delegate: demand)
            self.body = pieces.source
            if let bytes = request.body { _ = pieces.source.yield(bytes) }
            body = .pieces(pieces.sequence, demand)
        }
        let routed = GatewayRequest(
            head: request.head, body: body, source: source(of: request.head), redeemed: redeemed)
        redeemed = nil
        let handler = NIOLoopBound(self, eventLoop: loop)
        setup.open.beginAnswer()
        Task(executorPreference: setup.responder.executor) { [setup] in
            let answer = await setup.responder.respond(to: routed, on: channel)
            loop.execute {
                handler.value.write(answer)
                setup.open.endAnswer()
            }
        }
    }

    /// Returns the address that a request is counted for: only where there is TLS are any counted.
    private func source(of head: HTTPRequestHead) -> Result<SourceAddress?, ProblemDetails> {
        guard let tls else { return .success(nil) }
        do throws(ProblemDetails) {
            let fields =
                tls.peer.proxyProtocol == .forwarded ? head.headers.values(FieldName.forwarded) : []
            return .success(try setup.source(of: tls.peer, forwarded: fields))
        } catch {
            return .failure(error)
        }
    }

    /// Writes the response that is due; `nil` ends the connection.
    private func write(_ answer: RouteResponse?) {
        guard var answer else { return close() }
        guard let framing = machine.responseBegins(), let context else { return }
        if framing.isLast, !isHTTP2 {
            answer.head.headers.add(name: FieldName.connection, value: "close")
        }
        if framing.omitsBody { answer.omitBody() }
        switch answer.content {
        case .whole, .omitted:
            if writer.write(answer, to: context) { responseWritten() }
        case .pieces(let pieces):
            writer.begin(answer.head, isChunked: framing.allowsChunks, to: context)
            write(pieces, on: context.eventLoop)
        }
    }

    /// Writes a body as it arrives, until it ends or is cancelled.
    private func write(_ pieces: AsyncStream<ByteBuffer>, on loop: any EventLoop) {
        let handler = NIOLoopBound(self, eventLoop: loop)
        self.pieces = Task(executorPreference: setup.responder.executor) {
            for await piece in pieces {
                let written = loop.flatSubmit { handler.value.append(piece, on: loop) }
                guard (try? await written.get()) != nil else { break }
            }
            loop.execute { handler.value.endPieces() }
        }
        if machine.isQuiescing { self.pieces?.cancel() }
    }

    private func append(_ piece: ByteBuffer, on loop: any EventLoop) -> EventLoopFuture<Void> {
        guard let context else { return loop.makeFailedFuture(ChannelError.ioOnClosedChannel) }
        return writer.append(piece, to: context)
    }

    private func endPieces() {
        pieces = nil
        if let context, isResponding { writer.end(to: context) }
        responseWritten()
    }

    private func responseWritten() {
        guard let context else { return }
        perform(machine.responseWritten(now: context.eventLoop.now))
    }

    /// Writes a problem as the last response, and closes.
    private func refuse(_ problem: ProblemDetails, omitsBody: Bool) {
        guard let context else { return }
        var answer = problem.answer
        if omitsBody { answer.omitBody() }
        setup.responder.complete(&answer.head.headers)
        if !isHTTP2 { answer.head.headers.add(name: FieldName.connection, value: "close") }
        // A problem document is shorter than one round.
        _ = writer.write(answer, to: context)
        perform(.linger)
    }

    private func giveUpResponse(connectionToo: Bool) {
        let connection = isHTTP2 ? context?.channel.parent : nil
        setup.onUnreadAnswer()
        tls?.report(.unread, "a response is not read")
        close()
        // While the connection accepts bytes, only this stream is held back.
        if connectionToo, connection?.isWritable == false { connection?.close(promise: nil) }
    }
}
