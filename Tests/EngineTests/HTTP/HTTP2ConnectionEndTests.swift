import NIOCore
import NIOEmbedded
import NIOHTTP2
import Testing

@testable import GatewayEngine
@testable import GatewayServer

/// The GOAWAYs that a client gets when its connection ends.
@Suite struct HTTP2ConnectionEndTests {
    private let channel = EmbeddedChannel()
    private let end = HTTP2ConnectionEnd(
        firstRequestTimeout: .seconds(10), ConnectionSettings())

    init() throws {
        try channel.pipeline.syncOperations.addHandler(end)
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "peer")).wait()
    }

    private func begin(_ stream: HTTP2StreamID) { end.streamCreated(stream, channel: channel) }
    private func finish(_ stream: HTTP2StreamID) { end.streamClosed(stream, channel: channel) }

    /// Returns the last stream ids of the GOAWAYs sent since the last call.
    private func goodbyes() throws -> [HTTP2StreamID] {
        var named: [HTTP2StreamID] = []
        while let frame = try channel.readOutbound(as: HTTP2Frame.self) {
            guard case .goAway(let last, .noError, _) = frame.payload else { continue }
            named.append(last)
        }
        return named
    }

    @Test func anIdleConnectionEndsWithTheNewestRequest() throws {
        begin(1)
        begin(5)
        finish(5)
        channel.embeddedEventLoop.advanceTime(by: .seconds(100))
        #expect(try goodbyes().isEmpty, "a request is under way")
        finish(1)
        channel.embeddedEventLoop.advanceTime(by: .seconds(75))
        #expect(try goodbyes() == [5])
        #expect(!channel.isActive)
    }

    @Test func aConnectionWithoutARequestEndsSooner() throws {
        channel.embeddedEventLoop.advanceTime(by: .seconds(10))
        #expect(try goodbyes() == [.rootStream])
        #expect(!channel.isActive)
    }

    /// However long they take; the client knows that later ones are not processed.
    @Test func aServerThatStopsLetsRequestsEnd() throws {
        begin(1)
        begin(3)
        channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        #expect(try goodbyes() == [.maxID])
        finish(1)
        channel.embeddedEventLoop.advanceTime(by: .seconds(19))
        #expect(try goodbyes() == [])
        #expect(channel.isActive, "a request is under way")
        finish(3)
        channel.embeddedEventLoop.run()
        #expect(try goodbyes() == [3])
        #expect(!channel.isActive)
    }

    @Test func aServerThatStopsEndsAnIdleConnectionAtOnce() throws {
        begin(1)
        finish(1)
        channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        #expect(try goodbyes() == [1])
        #expect(!channel.isActive)
    }

    /// It is an error of the request, which may be repeated, and not of the connection.
    @Test func aRequestBeyondTheLimitIsRefused() throws {
        for number in 0..<100 { begin(HTTP2StreamID(2 * number + 1)) }
        #expect(end.isFull)
        begin(201)
        let frame = try #require(try channel.readOutbound(as: HTTP2Frame.self))
        guard case .rstStream(.refusedStream) = frame.payload, frame.streamID == 201 else {
            Issue.record("\(frame)")
            return
        }
        finish(1)
        #expect(!end.isFull && end.newestStream == 201)
        begin(203)
        #expect(try channel.readOutbound(as: HTTP2Frame.self) == nil)
        #expect(channel.isActive)
    }

    /// Notes the events of a stream.
    private final class Stream: ChannelInboundHandler {
        typealias InboundIn = Any
        private(set) var inputClosed = 0

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if event is HTTP2InputClosed { inputClosed += 1 }
        }
    }

    @Test func `a peer that has ended ends its streams, and they the connection`() throws {
        let handler = Stream()
        let stream = EmbeddedChannel(handler: handler, loop: channel.embeddedEventLoop)
        try stream.connect(to: SocketAddress(unixDomainSocketPath: "peer")).wait()
        end.streamCreated(1, channel: stream)
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(handler.inputClosed == 0, "after the frames of the last read")
        channel.embeddedEventLoop.run()
        #expect(handler.inputClosed == 1)
        #expect(channel.isActive)
        end.streamClosed(1, channel: stream)
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        #expect(try goodbyes() == [1])
        #expect(!channel.isActive)
    }

    /// Ends a stream with its first frame.
    private final class Refusal: ChannelInboundHandler {
        typealias InboundIn = Any

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            context.close(promise: nil)
        }
    }

    @Test func `a stream that ends with its first frame is not waited for`() throws {
        let end = HTTP2ConnectionEnd(
            firstRequestTimeout: .seconds(10), ConnectionSettings())
        let server = EmbeddedChannel()
        _ = try server.pipeline.syncOperations.configureHTTP2Pipeline(
            mode: .server, connectionConfiguration: .init(), streamConfiguration: .init(),
            streamDelegate: end
        ) { stream in
            stream.eventLoop.makeCompletedFuture {
                try stream.pipeline.syncOperations.addHandler(Refusal())
            }
        }
        try server.pipeline.syncOperations.addHandler(end)
        try server.connect(to: SocketAddress(unixDomainSocketPath: "peer")).wait()
        let request = [0x82, 0x84, 0x87, 0x41, 1, UInt8(ascii: "a")] as [UInt8]
        let frames = [0, 0, 0, 4, 0, 0, 0, 0, 0] + [0, 0, 6, 1, 5, 0, 0, 0, 1] + request
        try server.writeInbound(
            ByteBuffer(bytes: Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frames))
        #expect(end.newestStream == 1)
        server.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        #expect(!server.isActive)
    }

    @Test func `a connection without streams ends with its peer`() throws {
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        for _ in 0..<3 { channel.embeddedEventLoop.advanceTime(by: .milliseconds(1)) }
        #expect(!channel.isActive)
    }

    @Test func onlyWhatWasOpenIsOver() {
        begin(1)
        begin(5)
        finish(1)
        let over = (UInt32(0)..<10).filter { end.isOver($0) }
        // A client that opens stream 5 can no longer open stream 3.
        #expect(over == [1, 3])
        #expect(!end.isOver(.max))
    }
}
