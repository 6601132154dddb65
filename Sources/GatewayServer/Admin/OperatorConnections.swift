import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Bounds of a port for operators or probes.
struct OperatorConnectionSettings: Sendable {
    /// Open connections.
    var connectionsMax = 64
    /// From the connection's start to the end of its first request's head.
    var headTimeout = TimeAmount.seconds(15)
    /// From a request's head to the end of its body.
    var requestTimeout = TimeAmount.seconds(30)
    /// Between two requests of a connection.
    var idleTimeout = TimeAmount.seconds(75)
    /// From one part of an answer that the peer takes to the next.
    var answerTimeout = TimeAmount.seconds(30)
}

/// The open connections of a port for operators or probes. Beyond the limit the newest one stays and
/// an old one goes: whoever comes to ask is answered, however many others came to say nothing.
// Sound: used on the one event loop of these ports.
final class OperatorConnections: @unchecked Sendable {
    private let settings: OperatorConnectionSettings
    /// Oldest first; at most as many as the limit.
    private var open: [OperatorConnectionHandler] = []

    init(_ settings: OperatorConnectionSettings) {
        self.settings = settings
    }

    /// Returns the handler of a new connection, for its pipeline.
    func handler() -> OperatorConnectionHandler { OperatorConnectionHandler(self, settings) }

    fileprivate func add(_ handler: OperatorConnectionHandler) {
        if open.count >= settings.connectionsMax {
            // One that is being answered goes only when all are.
            let index = open.firstIndex { !$0.isAnswering } ?? open.startIndex
            open.remove(at: index).close()
        }
        open.append(handler)
    }

    fileprivate func remove(_ handler: OperatorConnectionHandler) {
        open.removeAll { $0 === handler }
    }
}

/// Closes a connection of such a port when it takes too long.
final class OperatorConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private enum Phase {
        /// No request came yet. To `receiving` with a head.
        case starting
        /// To `answering` with the end of the request.
        case receiving
        /// To `idle` with the end of the answer.
        case answering
        /// To `receiving` with a head.
        case idle
    }

    private let connections: OperatorConnections
    private let settings: OperatorConnectionSettings
    private var phase = Phase.starting
    private var context: ChannelHandlerContext?
    /// Parts of answers that have not reached the kernel.
    private var unwritten = 0
    /// When the phase or the last part began.
    private var began = NIODeadline.uptimeNanoseconds(0)
    private var timer: Scheduled<Void>?

    var isAnswering: Bool { phase == .answering }

    fileprivate init(_ connections: OperatorConnections, _ settings: OperatorConnectionSettings) {
        self.connections = connections
        self.settings = settings
    }

    /// The time that may pass from `began`; `nil` while it is the gateway that takes it.
    private var timeout: TimeAmount? {
        guard unwritten == 0 else { return settings.answerTimeout }
        return switch phase {
        case .starting: settings.headTimeout
        case .receiving: settings.requestTimeout
        case .answering: nil
        case .idle: settings.idleTimeout
        }
    }

    func close() { context?.close(promise: nil) }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        connections.add(self)
        enter(.starting)
    }

    func handlerRemoved(context: ChannelHandlerContext) { leave() }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    private func leave() {
        timer?.cancel()
        timer = nil
        context = nil
        connections.remove(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head: enter(.receiving)
        case .end where phase == .receiving: enter(.answering)
        case .body, .end: break
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = unwrapOutboundIn(data), phase == .answering { phase = .idle }
        let loop = context.eventLoop
        if unwritten == 0 { began = loop.now }
        unwritten += 1
        let promise = promise ?? loop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in
            self.unwritten -= 1
            self.began = loop.now
            self.startTimer()
        }
        context.write(data, promise: promise)
        startTimer()
    }

    private func enter(_ phase: Phase) {
        self.phase = phase
        if let context { began = context.eventLoop.now }
        startTimer()
    }

    /// One timer at a time; it looks again when it was set for what is over.
    private func startTimer() {
        guard timer == nil, let context, let timeout else { return }
        timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: began + timeout) {
            self.timer = nil
            guard let timeout = self.timeout else { return }
            if context.eventLoop.now >= self.began + timeout {
                self.close()
            } else {
                self.startTimer()
            }
        }
    }
}
