import GatewayTLS
import GatewayTestSupport
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Synchronization
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

/// Connections of the ports for operators and probes: answers that are streams, and peers that send
/// no request, do not read or do not end.
@Suite struct OperatorPortTests {
    /// A connection without TLS, and the bytes written to it.
    private struct Connection {
        let channel: NIOAsyncTestingChannel
        let socket: NIOLoopBound<TestSocket>

        /// - Parameter answer: Returns the answer for a path.
        init(
            _ loop: NIOAsyncTestingEventLoop, newest: NewestConnections? = nil,
            _ answer: @escaping @Sendable (GatewayRequest) async -> RouteResponse? = { _ in
                RouteResponse(.ok, body: ByteBuffer(string: "text"))
            }
        ) async throws {
            let channel = NIOAsyncTestingChannel(loop: loop)
            self.channel = channel
            try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
            socket = try await loop.executeInContext {
                let socket = TestSocket(takesAll: true)
                let setup = HTTPPipeline(
                    responder: Responder(
                        executor: nil, complete: { $0.add(name: "X-Port", value: "own") }
                    ) { request, _ in await answer(request) },
                    tlsSettings: TLSServerSettings(), loops: [loop], newest: newest)
                let handler = HTTPConnectionHandler(
                    setup, tls: nil, isHTTP2: false, requestDue: loop.now + .seconds(15),
                    progress: ConnectionProgress())
                try channel.pipeline.syncOperations.addHandlers([socket, handler])
                return NIOLoopBound(socket, eventLoop: loop)
            }
        }

        var loop: NIOAsyncTestingEventLoop { channel.testingEventLoop }

        func ask(
            _ path: String = "/livez", _ method: HTTPMethod = .GET,
            _ version: HTTPVersion = .http1_1,
            _ fields: HTTPHeaders = ["host": "localhost"], isWhole: Bool = true
        ) async throws {
            let head = HTTPRequestHead(version: version, method: method, uri: path, headers: fields)
            try await loop.executeInContext { [channel] in
                channel.pipeline.fireChannelRead(HTTPServerRequestPart.head(head))
                if isWhole { channel.pipeline.fireChannelRead(HTTPServerRequestPart.end(nil)) }
                channel.pipeline.fireChannelReadComplete()
            }
        }

        func onSocket<T: Sendable>(
            _ body: @escaping @Sendable (TestSocket) -> T
        ) async throws -> T {
            try await loop.executeInContext { [socket] in body(socket.value) }
        }

        /// Runs the loop until the bytes written end with this text.
        func waitFor(_ end: String) async throws {
            try await eventually("\(end.debugDescription) is written") {
                await loop.run()
                return try await onSocket { $0.text.hasSuffix(end) }
            }
        }
    }

    @Test func `whoever does not ask is closed`() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let silent = try await Connection(loop)
        let asking = try await Connection(loop)
        await loop.advanceTime(by: .seconds(14))
        #expect(silent.channel.isActive)
        let isDue = Mutex(false)
        let slow = try await Connection(loop) { _ in
            while !isDue.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(1)) }
            return RouteResponse(.ok)
        }
        try await slow.ask()
        try await asking.ask()
        try await asking.waitFor("text")
        await loop.advanceTime(by: .seconds(2))
        #expect(!silent.channel.isActive)
        await loop.advanceTime(by: .seconds(72))
        #expect(asking.channel.isActive)
        await loop.advanceTime(by: .seconds(2))
        #expect(!asking.channel.isActive)
        await loop.advanceTime(by: .hours(1))
        #expect(slow.channel.isActive, "the answer may take its time")
        isDue.withLock { $0 = true }
        try await slow.waitFor("\r\n\r\n")
        await loop.advanceTime(by: .seconds(76))
        #expect(!slow.channel.isActive)
    }

    @Test func `whoever does not read or end is closed`() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let deaf = try await Connection(loop) { _ in
            RouteResponse(.ok, body: ByteBuffer(repeating: 7, count: 40_000))
        }
        try await deaf.onSocket { $0.takesAll = false }
        try await deaf.ask()
        while try await deaf.onSocket({ $0.text.isEmpty }) { await loop.run() }
        await loop.advanceTime(by: .seconds(29))
        try await deaf.onSocket { $0.takeOne() }
        await loop.advanceTime(by: .seconds(29))
        #expect(deaf.channel.isActive)
        await loop.advanceTime(by: .seconds(2))
        #expect(!deaf.channel.isActive)
        let half = try await Connection(loop) { request in
            do {
                return RouteResponse(.ok, body: ByteBuffer(bytes: try await request.bytes(upTo: 9)))
            } catch {
                return (error as? ProblemDetails)?.answer
            }
        }
        try await half.ask("/", .POST, isWhole: false)
        await loop.advanceTime(by: .seconds(29))
        #expect(try await half.onSocket { $0.text.isEmpty })
        await loop.advanceTime(by: .seconds(2))
        try await eventually("the connection is closed") {
            await loop.run()
            return !half.channel.isActive
        }
        #expect(try await half.onSocket { $0.text.hasPrefix("HTTP/1.1 408 ") })
    }

    /// A new connection that sends a request is accepted, however many silent ones came before it.
    @Test func `the newest connection stays`() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let newest = NewestConnections(4, on: loop)
        let isOver = Mutex(false)
        let busy = try await Connection(loop, newest: newest) { _ in
            while !isOver.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(1)) }
            return nil
        }
        try await busy.ask()
        var silent: [Connection] = []
        for _ in 0..<50 {
            silent.append(try await Connection(loop, newest: newest))
            await loop.run()
            #expect(silent.last?.channel.isActive == true)
            #expect(silent.count { $0.channel.isActive } <= 3)
        }
        #expect(busy.channel.isActive)
        #expect(silent.suffix(3).allSatisfy { $0.channel.isActive })
        isOver.withLock { $0 = true }
    }

    // MARK: Answers that are streams

    /// A stream whose pieces a test supplies.
    private struct Source: Sendable {
        private let pieces: AsyncStream<ByteBuffer>
        let continuation: AsyncStream<ByteBuffer>.Continuation

        init() { (pieces, continuation) = AsyncStream.makeStream() }

        func send(_ text: String) { continuation.yield(ByteBuffer(string: text)) }

        var answer: RouteResponse { RouteResponse(.ok, headers: ["A": "b"], pieces: pieces) }
    }

    @Test func `a stream is sent in chunks, and the next request is answered behind it`()
        async throws
    {
        let source = Source()
        let connection = try await Connection(NIOAsyncTestingEventLoop()) { request in
            request.head.uri == "/live"
                ? source.answer
                : RouteResponse(.ok, body: ByteBuffer(string: request.head.uri))
        }
        try await connection.ask("/live")
        try await connection.waitFor(
            "HTTP/1.1 200 OK\r\nA: b\r\nX-Port: own\r\nTransfer-Encoding: chunked\r\n\r\n")
        source.send("one")
        try await connection.waitFor("\r\n\r\n3\r\none\r\n")
        try await connection.ask("/next")
        source.send("0123456789abcdef")
        try await connection.waitFor("10\r\n0123456789abcdef\r\n")
        source.continuation.finish()
        try await connection.waitFor(
            "0\r\n\r\nHTTP/1.1 200 OK\r\nX-Port: own\r\nContent-Length: 5\r\n\r\n/next")
    }

    @Test func `to HTTP 1.0 a stream is sent as it is, up to the end of the connection`()
        async throws
    {
        let source = Source()
        let connection = try await Connection(NIOAsyncTestingEventLoop()) { _ in source.answer }
        // An HTTP/1.0 request may lack Host.
        try await connection.ask("/live", .GET, .http1_0, [:])
        source.send("one")
        source.continuation.finish()
        try await connection.waitFor("X-Port: own\r\nConnection: close\r\n\r\none")
        try await connection.onSocket { #expect(!$0.text.contains("chunked")) }
    }

    @Test(arguments: [false, true])
    func `a stream ends with the gateway, and with its reader`(isGatewayFirst: Bool) async throws {
        let source = Source()
        let connection = try await Connection(NIOAsyncTestingEventLoop()) { _ in source.answer }
        try await connection.ask("/live")
        source.send("one")
        try await connection.waitFor("one\r\n")
        let isOver = Mutex(false)
        source.continuation.onTermination = { _ in isOver.withLock { $0 = true } }
        if isGatewayFirst {
            try await connection.loop.executeInContext { [channel = connection.channel] in
                channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
            }
            try await connection.waitFor("0\r\n\r\n")
        } else {
            try await connection.channel.close()
        }
        try await eventually("the stream and its connection have ended") {
            await connection.loop.run()
            return isOver.withLock { $0 } && !connection.channel.isActive
        }
    }

    /// Each piece is requested when the previous one has been sent.
    @Test func `a stream waits for its reader, and gives up one that does not read`() async throws {
        let asked = Mutex(0)
        let connection = try await Connection(NIOAsyncTestingEventLoop()) { _ in
            RouteResponse(
                .ok, headers: [:],
                pieces: AsyncStream(unfolding: {
                    asked.withLock { $0 += 1 }
                    return ByteBuffer(string: "piece")
                }))
        }
        try await connection.onSocket { $0.takesAll = false }
        try await connection.ask("/live")
        try await connection.waitFor("piece\r\n")
        await connection.loop.advanceTime(by: .seconds(29))
        #expect(asked.withLock { $0 } == 1)
        #expect(connection.channel.isActive)
        await connection.loop.advanceTime(by: .seconds(2))
        #expect(!connection.channel.isActive)
    }

    // MARK: Heads

    @Test func `the answer to HEAD has a length and no body`() async throws {
        let connection = try await Connection(NIOAsyncTestingEventLoop())
        try await connection.ask("/livez", .HEAD)
        try await connection.waitFor("Content-Length: 4\r\n\r\n")
        try await connection.ask()
        try await connection.waitFor(
            "\r\n\r\nHTTP/1.1 200 OK\r\nX-Port: own\r\nContent-Length: 4\r\n\r\ntext")
    }

    @Test(arguments: [["host": ""], [:], ["host": "a", "Host": "b"]] as [HTTPHeaders])
    func `what is refused before any route has the fields of the port`(fields: HTTPHeaders)
        async throws
    {
        let connection = try await Connection(NIOAsyncTestingEventLoop())
        try await connection.ask("/livez", .GET, .http1_1, fields)
        while connection.channel.isActive { await connection.loop.run() }
        try await connection.onSocket {
            #expect($0.text.hasPrefix("HTTP/1.1 400 ") && $0.text.contains("\r\nX-Port: own\r\n"))
        }
    }
}
