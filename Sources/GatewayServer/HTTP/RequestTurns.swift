import NIOCore
import NIOHTTP1
import WidgetModel

/// How requests are answered.
struct Responder: Sendable {
    /// Where the work of a request is done; `nil` for the threads of the process.
    let lane: LaneExecutor.Lane?
    /// Answers one request; `nil` closes the connection.
    let answer: @Sendable (GatewayRequest, any Channel) async -> GatewayAnswer?
}

/// Answers the requests of one connection, or of one HTTP/2 stream, one after another.
///
/// A route runs as a task of its own, begun when its request is there; where the end of a body is
/// long in coming, with what is there of it. What is read ahead of the routes is what came in one go.
///
/// Bound to its channel's event loop: all members are used on that loop only.
final class RequestTurns {
    /// A request that no route has yet.
    private struct Waiting {
        let head: HTTPRequestHead
        var body: ByteBuffer?

        mutating func append(_ bytes: ByteBuffer) {
            if body?.writeImmutableBuffer(bytes) == nil { body = bytes }
        }
    }

    private let isHTTP2: Bool
    private let settings: ConnectionSettings
    private let responder: Responder
    private let open: OpenChannels
    private let writer: AnswerWriter
    /// `nil` once the channel is gone.
    private var gate: ChannelHandlerContext?

    /// Requests that were received to their end, oldest first.
    private var waiting = CircularBuffer<Waiting>()
    /// The request whose end has not come, until a route has it.
    private var partial: Waiting?
    /// Takes what comes of the body of the request that is being answered.
    private var rest: RequestBody.Pieces.Source?
    /// A route has a request whose end has not come.
    private var isBodyOpen = false
    /// The route has to read before more of its body is taken.
    private var isFull = false
    /// The request received last has come to its end.
    private var isComplete = true
    private var isAnswering = false
    /// The answer that is being written ends the connection.
    private var isLastAnswer = false
    /// No request is begun any more.
    private var isOver = false
    /// The peer says nothing any more: its last answer ends our side too.
    private var inputEnded = false
    /// The gateway stops: the last answer ends the connection.
    private var isQuiescing = false
    /// What follows the requests is not HTTP.
    private var failure: (any Error)?
    /// Reading was asked for and is put off.
    private var isReadHeld = false
    private var bodyTimer: Scheduled<Void>?
    private var idleTimer: Scheduled<Void>?
    private var lastActive = NIODeadline.now()

    /// - Parameters:
    ///   - gate: Whose outbound side takes the answers.
    ///   - progress: That of all answers of the connection.
    ///   - onUnreadAnswer: Called when an answer is given up because the peer does not take it.
    init(
        _ gate: ChannelHandlerContext, isHTTP2: Bool, settings: ConnectionSettings,
        open: OpenChannels, progress: AnswerProgress = AnswerProgress(),
        onUnreadAnswer: @escaping @Sendable () -> Void = {}, responder: Responder
    ) {
        writer = AnswerWriter(
            isHTTP2: isHTTP2, timeout: settings.answerTimeout, connection: progress
        ) { connectionToo in
            onUnreadAnswer()
            gate.close(promise: nil)
            if isHTTP2, connectionToo { gate.channel.parent?.close(promise: nil) }
        }
        self.gate = gate
        self.isHTTP2 = isHTTP2
        self.settings = settings
        self.open = open
        self.responder = responder
        writer.onWritten = { self.answerIsWritten() }
        startIdleTimer(gate)
    }

    /// Forgets everything: the channel is gone.
    func leave() {
        gate = nil
        bodyTimer?.cancel()
        idleTimer?.cancel()
        writer.stop()
        waiting = []
        partial = nil
        endBody(with: ChannelError.ioOnClosedChannel)
    }

    /// Whether every request was answered.
    var isIdle: Bool { !isAnswering && waiting.isEmpty && partial == nil }

    // MARK: Requests

    /// Takes a part of a request.
    func take(_ part: HTTPServerRequestPart) {
        guard !isOver, failure == nil else { return }
        switch part {
        case .head(let head):
            isComplete = false
            lastActive = .now()
            partial = Waiting(head: head)
        case .body(let bytes):
            if let rest {
                if case .stopProducing = rest.yield(bytes) { isFull = true }
            } else {
                partial?.append(bytes)
            }
        case .end:
            isComplete = true
            isBodyOpen = false
            bodyTimer?.cancel()
            bodyTimer = nil
            endBody()
            if let request = partial {
                partial = nil
                waiting.append(request)
                beginNext()
            }
        }
    }

    /// Tells the peer to send the body of its request.
    func demandBody() {
        guard let gate else { return }
        if isHTTP2 {
            let head = HTTPResponseHead(version: .http1_1, status: .continue)
            gate.writeAndFlush(StreamGate.wrapOutboundOut(.head(head)), promise: nil)
        } else {
            write(GatewayAnswer.http1Continue, gate)
        }
    }

    /// Called when all parts of one read were taken.
    func readComplete() {
        guard !isComplete else { return }
        if bodyTimer == nil, let gate {
            bodyTimer = gate.eventLoop.assumeIsolated().scheduleTask(in: settings.requestTimeout) {
                if !self.isComplete { self.gate?.close(promise: nil) }
            }
        }
        beginNext()
    }

    /// Whether more is to be read from the peer; if not, reading goes on by itself later.
    func admitRead() -> Bool {
        isReadHeld = !waiting.isEmpty || partial != nil || isFull
        return !isReadHeld
    }

    /// The route wants more of its body, or no more at all.
    func bodyIsWanted() {
        isFull = false
        resumeReading()
    }

    /// The peer takes answers again.
    func drained() { beginNext() }

    private func resumeReading() {
        if isReadHeld, admitRead() { gate?.read() }
    }

    /// Ends the body under way, if a route has it.
    private func endBody(with error: (any Error)? = nil) {
        guard let rest else { return }
        self.rest = nil
        isFull = false
        if let error { rest.finish(error) } else { rest.finish() }
    }

    // MARK: Answers

    /// Begins with the next request, unless the answer before is not done with.
    private func beginNext() {
        guard !isAnswering, !isOver, let gate, gate.channel.isWritable else { return }
        if let request = waiting.popFirst() {
            begin(request.head, .whole(request.body), gate)
        } else if let request = partial {
            partial = nil
            let pieces = RequestBody.Pieces.makeSequence(
                elementType: ByteBuffer.self, failureType: (any Error).self,
                backPressureStrategy: .init(lowWatermark: 2, highWatermark: 10),
                finishOnDeinit: true, delegate: BodyDemand(self, on: gate.eventLoop))
            rest = pieces.source
            isBodyOpen = true
            if let body = request.body { _ = pieces.source.yield(body) }
            begin(request.head, .pieces(pieces.sequence), gate)
        } else {
            endIfDone(gate)
        }
    }

    private func begin(_ head: HTTPRequestHead, _ body: RequestBody, _ gate: ChannelHandlerContext)
    {
        isAnswering = true
        // RFC 9112, section 9.3. Whoever speaks HTTP/1.0 is not asked whether they would keep it.
        let isLast = !isHTTP2 && (!head.isKeepAlive || head.version == .http1_0)
        let request = GatewayRequest(head: head, body: body)
        let (channel, loop) = (gate.channel, gate.eventLoop)
        let turns = NIOLoopBound(self, eventLoop: loop)
        open.beginAnswer()
        Task(executorPreference: responder.lane) { [responder, open] in
            let answer = await responder.answer(request, channel)
            loop.execute {
                turns.value.give(answer, isLast: isLast)
                open.endAnswer()
            }
        }
    }

    private func give(_ answer: GatewayAnswer?, isLast: Bool) {
        guard let gate, !isOver else {
            isAnswering = false
            return
        }
        guard var answer else {
            isAnswering = false
            end(gate)
            return
        }
        if isLast { answer.head.headers.add(name: FieldName.connection, value: "close") }
        isLastAnswer = isLast
        if writer.write(answer, to: gate) { answerIsWritten() }
    }

    /// Goes on to what follows an answer.
    private func answerIsWritten() {
        isAnswering = false
        guard let gate, !isOver else { return }
        lastActive = .now()
        if idleTimer == nil { startIdleTimer(gate) }
        endBody()
        if isBodyOpen, !isHTTP2 {
            // What follows is the rest of a request that is answered: reading it to its end would
            // be the peer's to prolong. In HTTP/2 that holds nothing but the stream.
            end(gate)
            return
        }
        if isLastAnswer {
            isOver = true
            gate.close(mode: .output, promise: nil)
        } else {
            beginNext()
        }
        resumeReading()
    }

    /// Nothing between the gate and TLS looks at what goes out by HTTP/1.1.
    private func write(_ bytes: [UInt8], _ gate: ChannelHandlerContext) {
        gate.writeAndFlush(NIOAny(IOData.byteBuffer(ByteBuffer(bytes: bytes))), promise: nil)
    }

    /// Refuses what is no request, for everybody behind, and closes.
    func refuse(_ problem: ProblemDetails) {
        guard let gate, !isOver else { return }
        var answer = problem.answer
        if !isHTTP2 { answer.head.headers.add(name: FieldName.connection, value: "close") }
        // A problem is shorter than one round.
        _ = writer.write(answer, to: gate)
        end(gate)
    }

    // MARK: Ends

    private func end(_ gate: ChannelHandlerContext) {
        isOver = true
        gate.close(promise: nil)
    }

    /// What comes is not HTTP, or breaks off: requests that are whole are still answered.
    func fail(_ error: any Error) {
        guard failure == nil else { return }
        failure = error
        partial = nil
        endBody(with: error)
        beginNext()
    }

    /// The peer has ended its side.
    func endInput() {
        guard !isHTTP2 else { return }
        inputEnded = true
        endBody(with: ChannelError.inputClosed)
        partial = nil
        beginNext()
    }

    /// The gateway stops.
    func quiesce() {
        isQuiescing = true
        beginNext()
    }

    /// Ends the connection when all is answered and it is to end then.
    private func endIfDone(_ gate: ChannelHandlerContext) {
        if let failure {
            if let error = failure as? HTTPParserError {
                refuse(Problem.notHTTP(error))
            } else {
                end(gate)
            }
        } else if isQuiescing {
            end(gate)
        } else if inputEnded {
            isOver = true
            gate.close(mode: .output, promise: nil)
        }
    }

    /// An HTTP/2 connection has a time limit of its own.
    private func startIdleTimer(_ gate: ChannelHandlerContext) {
        guard !isHTTP2 else { return }
        let due = lastActive + TimeAmount(settings.idleTimeout)
        idleTimer = gate.eventLoop.assumeIsolated().scheduleTask(deadline: due) {
            self.idleTimer = nil
            guard let gate = self.gate, !self.isAnswering else { return }
            // The peer still reads the last answer, or does not, which is the writer's to judge.
            if self.writer.isWriting { self.lastActive = .now() }
            if NIODeadline.now() >= self.lastActive + TimeAmount(self.settings.idleTimeout) {
                gate.close(promise: nil)
            } else {
                self.startIdleTimer(gate)
            }
        }
    }
}
