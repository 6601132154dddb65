import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import GatewayEngine
@testable import GatewayServer

/// Peers that send requests and do not read the answers.
@Suite struct UnreadResponseTests {
    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = Any
        var context: ChannelHandlerContext?
        func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    }

    /// One writer on a channel, and its result.
    private final class Fixture {
        let channel: EmbeddedChannel
        let socket = TestSocket(takesAll: false)
        let handler = Handler()
        var stalls: [Bool] = []
        private(set) var writer: ResponseWriter?
        private(set) var isWritten = true

        init(isHTTP2: Bool, _ progress: ConnectionProgress, loop: EmbeddedEventLoop) throws {
            channel = EmbeddedChannel(handlers: [], loop: loop)
            try channel.pipeline.syncOperations.addHandlers([socket, handler])
            writer = ResponseWriter(
                isHTTP2: isHTTP2, timeout: .seconds(30), connection: progress,
                onStall: { [unowned self] in stalls.append($0) },
                onWritten: { [unowned self] in isWritten = true })
        }

        func answer(bytes: Int) throws {
            let body = ByteBuffer(repeating: 7, count: bytes)
            isWritten = try #require(writer).write(
                RouteResponse(.ok, body: body), to: try #require(handler.context))
        }
    }

    @Test(arguments: [false, true]) func anAnswerThatNobodyReadsIsGivenUp(isHTTP2: Bool) throws {
        let loop = EmbeddedEventLoop()
        let fixture = try Fixture(isHTTP2: isHTTP2, ConnectionProgress(), loop: loop)
        try fixture.answer(bytes: 40_000)
        #expect(fixture.socket.count >= 3)
        loop.advanceTime(by: .seconds(29))
        fixture.socket.takeOne()
        fixture.socket.takeOne()
        loop.advanceTime(by: .seconds(29))
        #expect(fixture.stalls.isEmpty, "a slow reader is a reader")
        loop.advanceTime(by: .seconds(1))
        #expect(fixture.stalls == [true])
        fixture.writer?.stop()
    }

    /// One peer's long answer neither blocks the loop nor fills the memory.
    @Test(arguments: [false, true]) func aLongAnswerIsWrittenInSeveralRounds(isHTTP2: Bool) throws {
        let loop = EmbeddedEventLoop()
        let fixture = try Fixture(isHTTP2: isHTTP2, ConnectionProgress(), loop: loop)
        try fixture.answer(bytes: 50 * ResponseWriter.pieceBytes)
        // The head is a separate write.
        let most = ResponseWriter.piecesMax + 1
        #expect((ResponseWriter.piecesMax...most).contains(fixture.socket.count))
        loop.advanceTime(by: .seconds(1))
        #expect(fixture.socket.count <= most, "no more is in flight at once")
        var rounds = 0
        while !fixture.isWritten {
            let before = fixture.socket.count
            fixture.socket.takeAll()
            #expect(fixture.socket.count == before, "the loop looks at its sockets first")
            loop.advanceTime(by: ResponseWriter.pause)
            #expect(fixture.socket.count - before <= most)
            rounds += 1
            try #require(rounds < 10)
        }
        #expect(rounds == 3)
        fixture.socket.takeAll()
        #expect(fixture.writer?.isWriting == false)
        #expect(fixture.stalls.isEmpty)
        fixture.writer?.stop()
    }

    @Test(arguments: [false, true]) func aLongAnswerThatNobodyReadsIsGivenUp(isHTTP2: Bool) throws {
        let loop = EmbeddedEventLoop()
        let fixture = try Fixture(isHTTP2: isHTTP2, ConnectionProgress(), loop: loop)
        try fixture.answer(bytes: 50 * ResponseWriter.pieceBytes)
        fixture.socket.takeAll()
        loop.advanceTime(by: .seconds(29))
        #expect(fixture.stalls.isEmpty)
        loop.advanceTime(by: .seconds(2))
        #expect(fixture.stalls == [true])
        fixture.writer?.stop()
        fixture.socket.takeAll()
        loop.advanceTime(by: .seconds(1))
        #expect(!fixture.isWritten)
    }

    @Test func anAnswerThatIsReadIsNoTrouble() throws {
        let loop = EmbeddedEventLoop()
        let fixture = try Fixture(isHTTP2: false, ConnectionProgress(), loop: loop)
        try fixture.answer(bytes: 100_000)
        fixture.socket.takeAll()
        #expect(fixture.writer?.isWriting == false)
        loop.advanceTime(by: .hours(1))
        #expect(fixture.stalls.isEmpty)
        fixture.writer?.stop()
    }

    /// A stream that is not read loses its answer; the connection ends when none of its streams is
    /// read.
    @Test func aConnectionEndsWhenNoAnswerOfItIsRead() throws {
        let loop = EmbeddedEventLoop()
        let progress = ConnectionProgress()
        let stalled = try Fixture(isHTTP2: true, progress, loop: loop)
        let read = try Fixture(isHTTP2: true, progress, loop: loop)
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
        for fixture in [stalled, read] { fixture.writer?.stop() }
    }

    /// Heartbeats that the peer accepts show that it reads.
    @Test func anEventStreamKeepsTheConnectionOfAnUnreadAnswer() throws {
        let loop = EmbeddedEventLoop()
        let progress = ConnectionProgress()
        let stalled = try Fixture(isHTTP2: true, progress, loop: loop)
        try stalled.answer(bytes: 10)
        for _ in 0..<2 {
            loop.advanceTime(by: .seconds(15))
            progress.last = loop.now
        }
        #expect(stalled.stalls == [false])
        stalled.writer?.stop()
    }
}

/// Keeps writes, like a socket whose peer does not read, unless it accepts everything.
final class TestSocket: ChannelOutboundHandler {
    typealias OutboundIn = Any
    private var writes = CircularBuffer<EventLoopPromise<Void>?>()
    private(set) var count = 0
    private(set) var text = ""
    var takesAll: Bool

    init(takesAll: Bool) { self.takesAll = takesAll }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        count += 1
        if case .byteBuffer(let bytes)? = unwrapOutboundIn(data) as? IOData {
            text += String(buffer: bytes)
        }
        if takesAll { promise?.succeed() } else { writes.append(promise) }
    }

    /// Completes one write, as if the peer had read it.
    func takeOne() { writes.popFirst()??.succeed() }

    func takeAll() { while !writes.isEmpty { takeOne() } }
}
