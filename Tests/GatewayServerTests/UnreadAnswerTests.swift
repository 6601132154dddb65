import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOHTTPTypes
import Testing

@testable import GatewayServer

/// Peers that ask and do not read, and peers of operators' ports that do not ask.
@Suite struct UnreadAnswerTests {
    /// Keeps what is written, as a socket whose peer does not read.
    private final class FullSocket: ChannelOutboundHandler {
        typealias OutboundIn = Any
        private(set) var writes = CircularBuffer<EventLoopPromise<Void>?>()
        private(set) var count = 0

        func write(
            context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?
        ) {
            writes.append(promise)
            count += 1
        }

        /// The peer takes one piece.
        func takeOne() { writes.popFirst()??.succeed() }

        func takeAll() { while !writes.isEmpty { takeOne() } }
    }

    private final class Gate: ChannelInboundHandler {
        typealias InboundIn = Any
        var context: ChannelHandlerContext?
        func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    }

    /// One writer on a channel, and what became of it.
    private final class World {
        let channel: EmbeddedChannel
        let socket = FullSocket()
        let gate = Gate()
        var stalls: [Bool] = []
        private(set) var writer: AnswerWriter?
        private(set) var isWritten = true

        init(isHTTP2: Bool, _ progress: AnswerProgress, loop: EmbeddedEventLoop) throws {
            channel = EmbeddedChannel(handlers: [], loop: loop)
            try channel.pipeline.syncOperations.addHandlers([socket, gate])
            writer = AnswerWriter(
                isHTTP2: isHTTP2, timeout: .seconds(30), connection: progress
            ) { [unowned self] in stalls.append($0) }
            writer?.onWritten = { [unowned self] in isWritten = true }
        }

        func answer(bytes: Int) throws {
            let body = ByteBuffer(repeating: 7, count: bytes)
            isWritten = try #require(writer).write(
                GatewayAnswer(.ok, body: body), to: try #require(gate.context))
        }
    }

    @Test(arguments: [false, true]) func anAnswerThatNobodyReadsIsGivenUp(isHTTP2: Bool) throws {
        let loop = EmbeddedEventLoop()
        let world = try World(isHTTP2: isHTTP2, AnswerProgress(), loop: loop)
        try world.answer(bytes: 40_000)
        #expect(world.socket.count >= 3)
        loop.advanceTime(by: .seconds(29))
        world.socket.takeOne()
        world.socket.takeOne()
        loop.advanceTime(by: .seconds(29))
        #expect(world.stalls.isEmpty, "a slow reader is a reader")
        loop.advanceTime(by: .seconds(1))
        #expect(world.stalls == [true])
        world.writer?.stop()
    }

    /// One peer's long answer does not keep the loop, nor does it fill the memory.
    @Test(arguments: [false, true]) func aLongAnswerIsWrittenInSeveralRounds(isHTTP2: Bool) throws {
        let loop = EmbeddedEventLoop()
        let world = try World(isHTTP2: isHTTP2, AnswerProgress(), loop: loop)
        try world.answer(bytes: 50 * AnswerWriter.pieceBytes)
        // The heads are a write of their own.
        let most = AnswerWriter.piecesMax + 1
        #expect((AnswerWriter.piecesMax...most).contains(world.socket.count))
        loop.advanceTime(by: .seconds(1))
        #expect(world.socket.count <= most, "no more is in flight at once")
        var rounds = 0
        while !world.isWritten {
            let before = world.socket.count
            world.socket.takeAll()
            #expect(world.socket.count == before, "the loop looks at its sockets first")
            loop.advanceTime(by: AnswerWriter.pause)
            #expect(world.socket.count - before <= most)
            rounds += 1
            try #require(rounds < 10)
        }
        #expect(rounds == 3)
        world.socket.takeAll()
        #expect(world.writer?.isWriting == false)
        #expect(world.stalls.isEmpty)
        world.writer?.stop()
    }

    @Test(arguments: [false, true]) func aLongAnswerThatNobodyReadsIsGivenUp(isHTTP2: Bool) throws {
        let loop = EmbeddedEventLoop()
        let world = try World(isHTTP2: isHTTP2, AnswerProgress(), loop: loop)
        try world.answer(bytes: 50 * AnswerWriter.pieceBytes)
        world.socket.takeAll()
        loop.advanceTime(by: .seconds(29))
        #expect(world.stalls.isEmpty)
        loop.advanceTime(by: .seconds(2))
        #expect(world.stalls == [true])
        world.writer?.stop()
        world.socket.takeAll()
        loop.advanceTime(by: .seconds(1))
        #expect(!world.isWritten)
    }

    @Test func anAnswerThatIsReadIsNoTrouble() throws {
        let loop = EmbeddedEventLoop()
        let world = try World(isHTTP2: false, AnswerProgress(), loop: loop)
        try world.answer(bytes: 100_000)
        world.socket.takeAll()
        #expect(world.writer?.isWriting == false)
        loop.advanceTime(by: .hours(1))
        #expect(world.stalls.isEmpty)
        world.writer?.stop()
    }

    /// One stream that is not read loses its answer; the connection goes when none is read.
    @Test func aConnectionEndsWhenNoAnswerOfItIsRead() throws {
        let loop = EmbeddedEventLoop()
        let progress = AnswerProgress()
        let stalled = try World(isHTTP2: true, progress, loop: loop)
        let read = try World(isHTTP2: true, progress, loop: loop)
        try stalled.answer(bytes: 10)
        try read.answer(bytes: 100_000)
        for _ in 0..<3 {
            loop.advanceTime(by: .seconds(12))
            read.socket.takeOne()
        }
        #expect(stalled.stalls == [false])
        #expect(read.stalls.isEmpty)
        loop.advanceTime(by: .seconds(60))
        #expect(read.stalls == [true])
        for world in [stalled, read] { world.writer?.stop() }
    }

    // MARK: Ports of operators and probes

    private func connection(
        _ connections: OperatorConnections, _ loop: EmbeddedEventLoop
    ) throws -> (EmbeddedChannel, FullSocket) {
        let socket = FullSocket()
        let channel = EmbeddedChannel(handlers: [], loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandlers([socket, connections.handler()])
        return (channel, socket)
    }

    private func ask(_ channel: EmbeddedChannel) throws {
        let head = HTTPRequest(method: .get, scheme: "http", authority: "x", path: "/livez")
        try channel.writeInbound(HTTPRequestPart.head(head))
        try channel.writeInbound(HTTPRequestPart.end(nil))
    }

    @Test func whoeverDoesNotAskIsClosed() throws {
        let loop = EmbeddedEventLoop()
        let connections = OperatorConnections(.init())
        let (silent, _) = try connection(connections, loop)
        let (asking, socket) = try connection(connections, loop)
        loop.advanceTime(by: .seconds(14))
        try ask(asking)
        loop.advanceTime(by: .seconds(2))
        #expect(!silent.isActive)
        // The answer may take its time.
        loop.advanceTime(by: .hours(1))
        #expect(asking.isActive)
        asking.write(HTTPResponsePart.head(.init(status: .ok)), promise: nil)
        asking.write(HTTPResponsePart.end(nil), promise: nil)
        socket.takeAll()
        loop.advanceTime(by: .seconds(74))
        #expect(asking.isActive)
        loop.advanceTime(by: .seconds(2))
        #expect(!asking.isActive)
    }

    @Test func whoeverDoesNotReadOrEndIsClosed() throws {
        let loop = EmbeddedEventLoop()
        let connections = OperatorConnections(.init())
        let (deaf, socket) = try connection(connections, loop)
        try ask(deaf)
        for _ in 0..<3 {
            deaf.write(HTTPResponsePart.body(ByteBuffer(string: "x")), promise: nil)
        }
        loop.advanceTime(by: .seconds(29))
        socket.takeOne()
        loop.advanceTime(by: .seconds(29))
        #expect(deaf.isActive)
        loop.advanceTime(by: .seconds(2))
        #expect(!deaf.isActive)
        let (half, _) = try connection(connections, loop)
        let head = HTTPRequest(method: .post, scheme: "http", authority: "x", path: "/")
        try half.writeInbound(HTTPRequestPart.head(head))
        loop.advanceTime(by: .seconds(31))
        #expect(!half.isActive)
    }

    /// Whoever comes to ask finds room, however many came before to say nothing.
    @Test func theNewestConnectionStays() throws {
        let loop = EmbeddedEventLoop()
        let connections = OperatorConnections(.init(connectionsMax: 4))
        let (busy, _) = try connection(connections, loop)
        try ask(busy)
        var silent: [EmbeddedChannel] = []
        for _ in 0..<50 {
            silent.append(try connection(connections, loop).0)
            #expect(silent.last?.isActive == true)
            let active = silent.filter { $0.isActive }
            #expect(active.count <= 3)
        }
        #expect(busy.isActive)
        #expect(silent.suffix(3).allSatisfy { $0.isActive })
    }
}
