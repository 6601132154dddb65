import NIOCore
import NIOHTTP1
import WidgetModel

/// Decides what one HTTP/1.1 connection, or one HTTP/2 stream, does next: what is read, which
/// request gets its response, and when our side ends. Owns no channel, task, timer or clock.
///
/// Requests are read ahead of their responses, so receiving and responding have a state each. Only
/// the content of one read is read ahead: reading pauses while a request has no route.
///
/// NIO's `HTTPServerPipelineHandler` would replace a fifth of this, but reads nothing while a
/// response is due: a waiting poll would notice late that its peer has gone. And when the gateway
/// stops, it drops pipelined requests, which get their responses here.
struct HTTPConnectionMachine {
    /// A request on its way to its route.
    struct Request: Equatable {
        let head: HTTPRequestHead
        /// The part of the body received so far; `nil` without any.
        var body: ByteBuffer?
        /// Whether `100 Continue` must be sent before more of the body comes.
        fileprivate let awaitsContinue: Bool

        fileprivate mutating func append(_ bytes: ByteBuffer) {
            if body?.writeImmutableBuffer(bytes) == nil { body = bytes }
        }
    }

    /// The framing of a response, determined by its request.
    struct Framing: Equatable {
        /// Whether the connection, or the HTTP/2 stream, ends with the response, whatever follows.
        fileprivate(set) var isLast: Bool
        /// Whether the request was `HEAD`: the response states a length and has no body.
        let omitsBody: Bool
        /// Whether a body of unknown length may be sent in chunks, which HTTP/1.0 lacks.
        let allowsChunks: Bool

        fileprivate init(_ head: HTTPRequestHead, isHTTP2: Bool) {
            let isHTTP10 = head.version == .http1_0
            // RFC 9112 section 9.3. Connections of HTTP/1.0 peers are never kept open.
            isLast = !isHTTP2 && (!head.isKeepAlive || isHTTP10 || Self.mayLeaveHTTP(head))
            omitsBody = head.method == .HEAD
            allowsChunks = !isHTTP10
        }

        /// Whether the decoder drops what follows the request, because it may be another protocol.
        private static func mayLeaveHTTP(_ head: HTTPRequestHead) -> Bool {
            head.method == .CONNECT || head.headers.contains(name: FieldName.upgrade)
        }
    }

    /// An error that ended the input.
    struct Failure: Equatable {
        let error: any Error

        static func == (one: Failure, other: Failure) -> Bool {
            "\(one.error)" == "\(other.error)"
        }
    }

    enum Action: Equatable {
        /// Admit the request to an event stream, then report `streamOpened`, `streamDeclined` or
        /// `abort`.
        case admitStream(ReloadsRequest)
        /// Write `100 Continue` (RFC 9110 section 15.2.1).
        case sendContinue
        /// Run the route of a request. Unless it is complete, its body continues with
        /// `forwardBody`.
        case respond(Request, isWhole: Bool)
        /// Hand the route a piece of its body; report `bodyFilled` if it must read before more.
        case forwardBody(ByteBuffer)
        /// End the route's body, at its proper end or with a failure.
        case endBody(Failure?)
        /// Cancel the response's body if it comes in pieces.
        case cancelPieces
        /// Write a problem as the last response, then close. `omitsBody` if the request is `HEAD`.
        case refuse(ProblemDetails, omitsBody: Bool)
        case close
        /// Close, and read and drop meanwhile what the peer is still sending.
        case linger
        /// Reset the HTTP/2 stream without an error, if its response has been accepted.
        case resetStream
        case closeOutput
        /// Read from the channel: an earlier read was postponed.
        case read
        /// Start the timer for the end of a request, unless it runs; report `requestTimedOut`.
        case startRequestTimer(NIODeadline)
        case cancelRequestTimer
        /// Start the idle timer, unless it runs.
        case startIdleTimer(NIODeadline)
    }

    /// The reason why nothing more is received.
    private enum InputEnd {
        case peer
        case failed(Failure)
    }

    /// The receiving side. Each state goes to `ended` through the peer's end or an error.
    private enum Input {
        /// Between two requests. Can transition to `reading` by a head.
        case idle
        /// No route has the request yet. Can transition to `idle` at its end, or to `forwarding`
        /// when its turn comes first.
        case reading(Request)
        /// The route receives the body as it arrives; while the route is full, nothing is read. Can
        /// transition to `idle` at the request's end, or to `discarding` with its response.
        case forwarding(isFull: Bool)
        /// The rest of a request that has its response. Can transition to `idle` at its end.
        case discarding
        /// Nothing more is received. `cutsBody` if the working route lacks the rest of its body.
        case ended(InputEnd, cutsBody: Bool)
    }

    /// The responding side. Each state goes to `closed` with the channel, and to `draining` when
    /// the connection has to end.
    private enum Output {
        /// No request has arrived. Can transition to `idle` or `admitting` with the first head.
        case connected
        /// No response is in flight. Can transition to `responding` when a request is pending and
        /// the channel is writable, or to `admitting` when one asks for an event stream.
        case idle
        /// An event stream was requested. Holds the parts received since. Can transition to
        /// `streaming`, or back to `idle`, where a route responds.
        case admitting([HTTPServerRequestPart])
        /// A route is working, or its response is being written. Can transition to `idle`.
        case responding(Framing)
        /// A shard writes the event stream (HTTP/2).
        case streaming
        /// Our side has ended: further input is dropped.
        case draining
        case closed
    }

    /// The maximum number of parts held during an admission: a request for an event stream has no
    /// body.
    private static let heldPartsMax = 16

    private let isHTTP2: Bool
    private let offersStreams: Bool
    private let settings: ConnectionSettings
    private var input = Input.idle
    private var output = Output.connected
    /// Complete requests without a route, oldest first.
    private var pending = CircularBuffer<Request>()
    private var isWritable = true
    /// Whether a read was requested and postponed.
    private var isReadHeld = false
    /// Whether the gateway stops: the connection ends when all responses are written.
    private(set) var isQuiescing = false
    private var lastActive = NIODeadline.uptimeNanoseconds(0)
    /// The deadline of the body being received.
    private var deadline: BodyDeadline
    /// The number of its bytes still to come; `nil` if it is not stated.
    private var bodyLeft: Int?

    /// - Parameter offersStreams: Whether event streams are opened here; otherwise the routes
    ///   receive such requests.
    init(isHTTP2: Bool, offersStreams: Bool, settings: ConnectionSettings) {
        (self.isHTTP2, self.offersStreams, self.settings) = (isHTTP2, offersStreams, settings)
        deadline = BodyDeadline(settings, now: .uptimeNanoseconds(0))
    }

    /// Whether a route is working, or its response is being written.
    var isResponding: Bool { framing != nil }

    /// The framing of the response that is due; `nil` if none is.
    var framing: Framing? {
        if case .responding(let framing) = output { framing } else { nil }
    }

    /// Whether a request may still become an event stream.
    var isAdmitting: Bool { if case .admitting = output { true } else { false } }

    /// Whether blocks of an event stream may be written.
    var isStreaming: Bool { if case .streaming = output { true } else { false } }

    /// Whether every received request has its response.
    var isIdle: Bool {
        if case .idle = output, case .idle = input { pending.isEmpty } else { false }
    }
}

// MARK: Requests

extension HTTPConnectionMachine {
    mutating func received(_ part: HTTPServerRequestPart, now: NIODeadline) -> [Action] {
        switch output {
        case .admitting(var parts):
            guard parts.count < Self.heldPartsMax else { return abort() }
            parts.append(part)
            output = .admitting(parts)
            return []
        case .streaming, .draining, .closed: return []
        case .connected, .idle, .responding: break
        }
        switch part {
        case .head(let head): return receivedHead(head, now: now)
        case .body(let bytes): return receivedBody(bytes, now: now)
        case .end: return resumingRead(receivedEnd(), now: now)
        }
    }

    private mutating func receivedHead(_ head: HTTPRequestHead, now: NIODeadline) -> [Action] {
        guard case .idle = input else { return [] }
        lastActive = now
        var actions: [Action] = []
        if case .connected = output {
            output = .idle
            actions = [.cancelRequestTimer]
        }
        if let problem = head.problem(isHTTP2: isHTTP2, settings) {
            // The responses to earlier requests come first.
            return actions
                + (isIdle
                    ? refuse(problem, omitsBody: head.method == .HEAD)
                    : failed(HTTPParserError.invalidHeaderToken))
        }
        if isIdle, offersStreams, head.method == .GET, case let request = ReloadsRequest(head),
            request.wantsStream
        {
            output = .admitting([.head(head)])
            return actions + [.admitStream(request)]
        }
        return actions + accept(head, now: now)
    }

    private mutating func accept(_ head: HTTPRequestHead, now: NIODeadline) -> [Action] {
        deadline = BodyDeadline(settings, now: now)
        bodyLeft = head.headers.value(FieldName.contentLength).flatMap { Int($0) }
        let expectsContinue = head.headers.value(FieldName.expect)?.lowercased() == "100-continue"
        // The route decides whether to read the body. `100 Continue` must not be written into the
        // previous response.
        let isNext = isIdle
        input = .reading(Request(head: head, awaitsContinue: expectsContinue && !isNext))
        return expectsContinue && isNext ? [.sendContinue] : []
    }

    private mutating func receivedBody(_ bytes: ByteBuffer, now: NIODeadline) -> [Action] {
        deadline.received(bytes.readableBytes, now: now)
        bodyLeft = bodyLeft.map { $0 - bytes.readableBytes }
        switch input {
        case .reading(var request):
            // Without this assignment the bytes would be copied.
            input = .idle
            request.append(bytes)
            input = .reading(request)
            return []
        case .forwarding: return [.forwardBody(bytes)]
        case .idle, .discarding, .ended: return []
        }
    }

    private mutating func receivedEnd() -> [Action] {
        switch input {
        case .idle, .ended: return []
        case .reading(let request):
            input = .idle
            pending.append(request)
            return [.cancelRequestTimer] + next()
        case .forwarding:
            input = .idle
            return [.cancelRequestTimer, .endBody(nil)]
        case .discarding:
            input = .idle
            return [.cancelRequestTimer]
        }
    }

    /// Records that all parts of one read were received: a request whose end is not among them
    /// starts without it.
    mutating func readCompleted(now: NIODeadline) -> [Action] {
        guard isReceiving else { return [] }
        let actions = resumingRead(next(), now: now)
        return [.startRequestTimer(deadline.end(now: now, .distantPast))] + actions
    }

    /// Whether a request's end has not arrived.
    private var isReceiving: Bool {
        switch (output, input) {
        case (.idle, .reading), (.idle, .discarding), (.responding, .reading),
            (.responding, .forwarding):
            true
        default: false
        }
    }

    /// Records that the route must read its body before more of it is read from the channel.
    mutating func bodyFilled(now: NIODeadline) {
        if case .forwarding = input { input = .forwarding(isFull: true) }
        deadline.reads(isReadAllowed, now: now)
    }

    /// Records that the route wants more of its body, or no more at all.
    mutating func bodyWanted(now: NIODeadline) -> [Action] {
        if case .forwarding = input { input = .forwarding(isFull: false) }
        return resumingRead([], now: now)
    }

    /// Returns whether the channel may be read now; otherwise `read` follows later.
    mutating func readRequested() -> Bool {
        isReadHeld = !isReadAllowed
        return !isReadHeld
    }

    private var isReadAllowed: Bool {
        switch (output, input) {
        case (.idle, .reading), (.responding, .reading), (_, .forwarding(isFull: true)): false
        default: pending.isEmpty
        }
    }

    private mutating func resumingRead(_ actions: [Action], now: NIODeadline?) -> [Action] {
        if let now { deadline.reads(isReadAllowed, now: now) }
        guard isReadHeld, isReadAllowed else { return actions }
        isReadHeld = false
        return actions + [.read]
    }
}

// MARK: Event streams

extension HTTPConnectionMachine {
    /// Records that the event stream's response begins.
    mutating func streamOpened() {
        if isAdmitting { output = .streaming }
    }

    /// Records that the event stream's response has ended.
    mutating func streamEnded() {
        if isStreaming { output = .draining }
    }

    /// Records that no event stream is opened: a route responds with the reason.
    mutating func streamDeclined(now: NIODeadline) -> [Action] {
        guard case .admitting(let parts) = output, case .head(let head)? = parts.first else {
            return []
        }
        output = .idle
        let actions = accept(head, now: now)
        return parts.dropFirst().reduce(into: actions) { $0 += received($1, now: now) }
    }
}

// MARK: Responses

extension HTTPConnectionMachine {
    /// Starts the next request, or ends the connection if there is none and it has to end.
    private mutating func next() -> [Action] {
        guard case .idle = output, isWritable else { return [] }
        if let request = pending.popFirst() {
            output = .responding(Framing(request.head, isHTTP2: isHTTP2))
            return [.respond(request, isWhole: true)]
        }
        switch input {
        case .reading(let request):
            input = .forwarding(isFull: false)
            output = .responding(Framing(request.head, isHTTP2: isHTTP2))
            let respond = Action.respond(request, isWhole: false)
            return request.awaitsContinue ? [.sendContinue, respond] : [respond]
        case .ended(.failed(let failure), _):
            guard let error = failure.error as? HTTPParserError else { return abort() }
            return refuse(Problem.notHTTP(error))
        case .idle, .forwarding, .discarding, .ended(.peer, _):
            if isQuiescing, !isHTTP2 { return abort() }
            if case .ended = input { return drain(.closeOutput) }
            return []
        }
    }

    /// Records that the response due begins; returns its framing, `nil` if none is due. If the rest
    /// of the request is long, the peer could occupy the connection with it: it is not waited for.
    mutating func responseBegins() -> Framing? {
        guard case .responding(var framing) = output else { return nil }
        switch input {
        case .forwarding where bodyLeft ?? .max > settings.restBytesMax, .ended(_, cutsBody: true):
            framing.isLast = true
            output = .responding(framing)
        case .idle, .reading, .forwarding, .discarding, .ended: break
        }
        return framing
    }

    /// Records that the response in flight was completely written.
    mutating func responseWritten(now: NIODeadline) -> [Action] {
        guard let framing = responseBegins() else { return [] }
        lastActive = now
        output = .idle
        var actions: [Action] = []
        switch input {
        case .forwarding:
            input = .discarding
            actions = [.endBody(nil)]
        case .ended(_, cutsBody: true): input = .discarding
        case .idle, .reading, .discarding, .ended: break
        }
        if isHTTP2 {
            let cut: [Action] = [.startRequestTimer(now + settings.bodyPause), .resetStream]
            return resumingRead(actions + (framing.isLast ? cut : next()), now: now)
        }
        if framing.isLast, case .discarding = input { return actions + drain(.linger) }
        actions.append(.startIdleTimer(now + TimeAmount(settings.idleTimeout)))
        actions += framing.isLast ? drain(.closeOutput) : next()
        return resumingRead(actions, now: now)
    }

    /// Records whether the channel accepts bytes: a peer that does not read gets no further
    /// response.
    mutating func writabilityChanged(to isWritable: Bool, now: NIODeadline) -> [Action] {
        self.isWritable = isWritable
        return isWritable ? resumingRead(next(), now: now) : []
    }
}

// MARK: Ends

extension HTTPConnectionMachine {
    /// Records that the request timer fired: the time for the first head, or for the end of a
    /// request, may be over. A route that lacks its body answers 408.
    ///
    /// - Parameter bodiesDue: The deadline by the pace of all bodies of the connection.
    mutating func requestTimedOut(now: NIODeadline, bodiesDue: NIODeadline) -> [Action] {
        if case .connected = output { return abort() }
        guard isReceiving else { return [] }
        let end = deadline.end(now: now, bodiesDue)
        guard now >= end else { return [.startRequestTimer(end)] }
        guard case .forwarding = input else { return abort() }
        input = .ended(.peer, cutsBody: true)
        return [.endBody(Failure(error: Problem.slowBody))]
    }

    /// Records that the idle timer fired.
    ///
    /// - Parameter isWriting: Whether the peer has not accepted all of the last response: the
    ///   connection is not idle then.
    mutating func idleTimedOut(now: NIODeadline, isWriting: Bool) -> [Action] {
        switch output {
        case .responding, .streaming, .closed: return []
        case .connected, .idle, .admitting, .draining: break
        }
        if isWriting { lastActive = now }
        let due = lastActive + TimeAmount(settings.idleTimeout)
        return now >= due ? drain(.close) : [.startIdleTimer(due)]
    }

    /// Records input that is not HTTP or breaks off. Complete requests still get their responses.
    mutating func failed(_ error: any Error) -> [Action] {
        switch output {
        case .connected, .admitting:
            return (error as? HTTPParserError).map { refuse(Problem.notHTTP($0)) } ?? []
        case .idle, .responding: return endInput(.failed(Failure(error: error)), error)
        case .streaming, .draining, .closed: return []
        }
    }

    /// Records that the peer has ended its side. Complete requests still get their responses.
    mutating func inputClosed() -> [Action] {
        switch output {
        case .connected: return abort()
        case .admitting where !isHTTP2: return abort()
        case .idle where !isHTTP2, .responding where !isHTTP2:
            return endInput(.peer, ChannelError.inputClosed)
        case .idle, .admitting, .responding, .streaming, .draining, .closed: return []
        }
    }

    /// Records that the peer has ended its side of the HTTP/2 connection. An event stream ends. A
    /// request whose body is cut off fails, after the bytes that have arrived are read; complete
    /// requests get their responses.
    mutating func connectionInputClosed() -> [Action] {
        switch (output, input) {
        case (.connected, _), (.admitting, _), (.streaming, _): abort()
        case (.responding, .forwarding) where !isReadHeld:
            endInput(.peer, ChannelError.inputClosed)
        case (.idle, .discarding): [.resetStream]
        case (.idle, _), (.responding, _), (.draining, _), (.closed, _): []
        }
    }

    private mutating func endInput(_ end: InputEnd, _ error: any Error) -> [Action] {
        var actions: [Action] = [.cancelRequestTimer]
        switch input {
        case .ended(.failed, _): return []
        case .ended(.peer, let cutsBody): input = .ended(end, cutsBody: cutsBody)
        case .forwarding:
            input = .ended(end, cutsBody: true)
            actions.append(.endBody(Failure(error: error)))
        case .idle, .reading, .discarding: input = .ended(end, cutsBody: false)
        }
        return resumingRead(actions + next(), now: nil)
    }

    /// Begins to stop. Responses in flight continue, and the shard ends event streams.
    mutating func quiesce() -> [Action] {
        if case .connected = output { return abort() }
        isQuiescing = true
        return [.cancelPieces] + next()
    }

    /// Ends the connection at once.
    mutating func abort() -> [Action] {
        if case .closed = output { [] } else { drain(.close) }
    }

    private mutating func refuse(
        _ problem: ProblemDetails, omitsBody: Bool = false
    ) -> [Action] { drain(.refuse(problem, omitsBody: omitsBody)) }

    private mutating func drain(_ last: Action) -> [Action] {
        output = .draining
        pending.removeAll()
        return [last]
    }

    /// Records that the channel is gone.
    mutating func channelClosed() -> [Action] {
        output = .closed
        pending.removeAll()
        guard case .forwarding = input else { return [] }
        let failure = Failure(error: ChannelError.ioOnClosedChannel)
        input = .ended(.peer, cutsBody: true)
        return [.endBody(failure)]
    }
}
