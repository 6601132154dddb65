import Foundation
import GatewayTestSupport
import Glibc
import NIOCore
import NIOPosix
import Testing

@testable import GatewayTLS

/// An event that a probe saw on one connection.
enum Seen: Equatable, Sendable {
    case open(String?)
    case inputClosed
    case outputClosed
    case failed(TLSError.Code)
    case inactive
    case drained
    case written(Bool)
}

/// A value that the loop writes and the test waits for.
final class Record<Value: Sendable>: @unchecked Sendable {
    // Sound: `value` is touched under the condition's lock only.
    private let condition = NSCondition()
    private var value: Value

    init(_ value: Value) { self.value = value }

    var now: Value {
        condition.lock()
        defer { condition.unlock() }
        return value
    }

    func change(_ body: (inout Value) -> Void) {
        condition.lock()
        body(&value)
        condition.broadcast()
        condition.unlock()
    }

    /// Waits until `holds` returns true, and returns the value. The test fails after the patience.
    @discardableResult
    func wait(
        _ what: Comment = "", _ location: SourceLocation = #_sourceLocation,
        until holds: (Value) -> Bool
    ) -> Value {
        let limit = Date(timeIntervalSinceNow: Patience.seconds)
        condition.lock()
        defer { condition.unlock() }
        while !holds(value) {
            guard condition.wait(until: limit) else {
                Issue.record("never true: \(what); last value \(value)", sourceLocation: location)
                return value
            }
        }
        return value
    }
}

/// One accepted connection, as a test uses it.
final class Connection: @unchecked Sendable {
    // Sound: `tls` is used on the channel's loop only, through `onLoop`.
    let channel: any Channel
    let negotiatedProtocol: String?
    private let tls: TLSServerHandler
    let seen = Record<[Seen]>([])
    let received = Record<[UInt8]>([])

    init(_ channel: any Channel, _ tls: TLSServerHandler) {
        self.channel = channel
        self.tls = tls
        negotiatedProtocol = tls.negotiatedProtocol
    }

    func onLoop<Result: Sendable>(
        _ body: @escaping @Sendable (TLSServerHandler) throws -> Result
    ) throws -> Result {
        try channel.eventLoop.submit { try body(self.tls) }.wait()
    }

    func write(_ bytes: [UInt8]) throws {
        try channel.writeAndFlush(ByteBuffer(bytes: bytes)).wait()
    }
}

/// Records the events of a channel; echoes if asked to.
final class Probe: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    private let connection: Connection
    private let echoes: Bool

    init(_ connection: Connection, echoes: Bool) {
        self.connection = connection
        self.echoes = echoes
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = Self.unwrapInboundIn(data)
        if echoes {
            context.write(Self.wrapOutboundOut(bytes), promise: nil)
        } else {
            connection.received.change { $0.append(contentsOf: bytes.readableBytesView) }
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if echoes { context.flush() }
        context.fireChannelReadComplete()
    }

    func channelActive(context: ChannelHandlerContext) {
        note(.open(connection.negotiatedProtocol))
        context.fireChannelActive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed: note(.inputClosed)
        case ChannelEvent.outputClosed: note(.outputClosed)
        default: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? TLSError { note(.failed(error.code)) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        note(.inactive)
        context.fireChannelInactive()
    }

    private func note(_ seen: Seen) {
        connection.seen.change { $0.append(seen) }
    }
}

/// Starts the channel of every other connection only in `passOn`, so that both ways are used.
private final class Guests: Reception {
    private let start: (Arrived) -> Void
    private var isLate = false
    private var waiting: [Arrived] = []

    init(_ start: @escaping (Arrived) -> Void) { self.start = start }

    func take(_ arrived: Arrived) -> Bool {
        isLate.toggle()
        if isLate { waiting.append(arrived) } else { start(arrived) }
        return isLate
    }

    func passOn() {
        for one in waiting { start(one) }
        waiting = []
    }
}

/// A real listener on 127.0.0.1.
final class TestServer: Sendable {
    struct Options: Sendable {
        var echoes = true
        var halfClosure = true
        var autoRead = true
        var threads = 1
        var sendBuffer: Int? = nil
        /// The most bytes that one event of the loop reads.
        var readBytes: Int? = nil
        var settings = TLSServerSettings()
        /// Whether connections are handed on with their first bytes.
        var waits = false
        var connectionsMax = 1_000
        var connectionsPerAddressMax: Int?
        var patience: Int64 = 0
    }

    let group: MultiThreadedEventLoopGroup
    let identity: TLSIdentity
    let counters: TLSCounters
    let limit: ConnectionLimit
    let connections: Record<[Connection]>
    let port: Int
    private let arrivals: TLSAcceptor

    init(_ context: TLSContext? = nil, _ options: Options) throws {
        let identity = TLSIdentity(try context ?? Self.context())
        let connections = Record<[Connection]>([])
        let group = MultiThreadedEventLoopGroup(numberOfThreads: options.threads)
        let socket = try ListeningSocket(
            host: "127.0.0.1", port: 0, patience: options.patience)
        try socket.listen()
        limit = ConnectionLimit(
            options.connectionsMax, perAddress: options.connectionsPerAddressMax)
        arrivals = try TLSAcceptor(
            socket, identity: identity, settings: options.settings, limit: limit,
            threads: options.threads, waits: { [waits = options.waits] _ in waits }
        ) { Guests { Self.start($0, options, connections, on: group.next()) } }
        (port, self.group, self.identity) = (socket.port, group, identity)
        self.counters = options.settings.counters
        self.connections = connections
    }

    private static func start(
        _ arrived: Arrived, _ options: Options, _ connections: Record<[Connection]>,
        on loop: any EventLoop
    ) {
        var bootstrap = ClientBootstrap(group: loop)
            .channelOption(.allowRemoteHalfClosure, value: options.halfClosure)
            .channelOption(.autoRead, value: options.autoRead)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let tls = TLSServerHandler(arrived, settings: options.settings)
                    let connection = Connection(channel, tls)
                    let sync = channel.pipeline.syncOperations
                    try sync.addHandler(tls)
                    try sync.addHandler(Probe(connection, echoes: options.echoes))
                    connections.change { $0.append(connection) }
                }
            }
        if let size = options.sendBuffer {
            bootstrap = bootstrap.channelOption(.socketOption(.so_sndbuf), value: .init(size))
        }
        if let size = options.readBytes {
            bootstrap =
                bootstrap
                .channelOption(.maxMessagesPerRead, value: 1)
                .channelOption(
                    .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: size))
        }
        _ = bootstrap.withConnectedSocket(arrived.connection.takeSocket())
    }

    static func context(_ change: (inout TLSContextSettings) -> Void = { _ in }) throws
        -> TLSContext
    {
        var settings = TLSContextSettings()
        change(&settings)
        let made = Certificates.made
        return try TLSContext(
            certificateChain: .file(made.server), privateKey: .file(made.serverKey),
            settings: settings)
    }

    /// Waits for the connection that was handed on as number `index`, and returns it.
    func connection(_ index: Int = 0) throws -> Connection {
        let all = connections.wait("connection \(index)") { $0.count > index }
        return try #require(all.indices.contains(index) ? all[index] : nil)
    }

    func client(_ change: (inout RawClient.Options) -> Void = { _ in }) throws -> RawClient {
        var options = RawClient.Options()
        change(&options)
        return try RawClient(port: port, options)
    }

    /// Returns once no connection is left that was not handed on.
    func stopArrivals() {
        arrivals.stop()
        let ended = Record(false)
        Task { [arrivals] in
            await arrivals.ended()
            ended.change { $0 = true }
        }
        ended.wait("the end of all arrivals") { $0 }
    }

    /// Waits until this number of connections is open, handed on or not. A thread reserves a place
    /// before it knows whether there is a connection to accept, so the count must be seen 20 times
    /// in a row.
    func waitForAccepted(_ count: Int) {
        let limit = Date(timeIntervalSinceNow: Patience.seconds)
        var seen = 0
        while seen < 20, Date() < limit {
            seen = self.limit.taken == count ? seen + 1 : 0
            usleep(1_000)
        }
        #expect(self.limit.taken == count)
    }

    /// Waits until no connection is left, handed on or not.
    func waitForNobody() {
        #expect(throws: Never.self) {
            try blockUntil("every connection has ended", details: { "\(limit.taken) left" }) {
                limit.taken == 0
            }
        }
    }

    /// Waits until the counters are as expected.
    func waitForCounts(_ what: String, until holds: (TLSCounts) -> Bool) {
        #expect(throws: Never.self) {
            try blockUntil(what, details: { "\(counters.snapshot())" }) {
                holds(counters.snapshot())
            }
        }
    }

    /// Ends everything at once, without waiting for clients that the test left open.
    func stop() {
        for connection in connections.now {
            let channel = connection.channel
            try? channel.eventLoop.submit {
                let sync = channel.pipeline.syncOperations
                _ = try sync.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                    shutdown($0, Int32(SHUT_RDWR))
                }
            }.wait()
        }
        stopArrivals()
        try? group.syncShutdownGracefully()
    }
}

/// The servers of a test, which end with it.
final class TestServers {
    private var stops: [() -> Void] = []

    deinit { for stop in stops { stop() } }

    func start(
        _ context: TLSContext? = nil, _ change: (inout TestServer.Options) -> Void = { _ in }
    ) throws -> TestServer {
        var options = TestServer.Options()
        change(&options)
        let server = try TestServer(context, options)
        stops.append { server.stop() }
        return server
    }

    func house(
        _ context: TLSContext? = nil, _ change: (inout TestServer.Options) -> Void = { _ in }
    ) throws -> StreamHouse {
        let house = try StreamHouse(context, change)
        stops.append { house.stop() }
        return house
    }
}

extension InputBudget.Rate {
    /// A budget without a limit, for readers that send a lot.
    static let unlimited = Self(burst: .max, perSecond: 0)
}

/// Returns bytes that depend on their position, so that a mix-up is detected.
func pattern(_ count: Int, seed: Int = 0) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8) ^ (seed &* 97)) }
}
