import COpenSSL
import Foundation
import GatewayTLS
import GatewayTestSupport
import Glibc
import NIOCore
import NIOPosix
import Testing

/// Connections that left their channels.
@Suite(.serialized) struct StreamTests {
    private let servers = TestServers()

    private func slow(
        _ change: (inout TestServer.Options) -> Void = { _ in }
    ) throws -> (StreamHouse, RawClient, AdoptedStream) {
        // Small buffers on both sides: otherwise the kernel accepts a lot.
        let house = try servers.house {
            $0.settings.streamSendBufferBytes = 4096
            change(&$0)
        }
        let (client, stream) = try house.stream { $0.receiveBuffer = 4096 }
        return (house, client, stream)
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func aStreamOutlivesItsChannel(version: Int32) throws {
        let house = try servers.house()
        let (client, connection) = try house.connect { $0.version = version }
        try connection.write(pattern(300))
        let before = house.server.counters.snapshot()
        let stream = try #require(try house.adopt(connection))
        connection.seen.wait { $0.contains(.inactive) }
        #expect(try stream.keepsOpenSSL == (version == TLS1_2_VERSION))
        #expect(try client.read(300) == pattern(300))
        for size in [1, 500, 16_384, 50_000] {
            #expect(try stream.send(pattern(size)) == .sent)
            #expect(try client.read(size) == pattern(size))
        }
        #expect(try stream.send([]) == .sent)
        #expect(try stream.queuedBytes == 0)
        let after = house.server.counters.snapshot()
        let sent = after.bytesSentDirectly - before.bytesSentDirectly
        #expect(sent > 66_885 && sent < 67_500)
        #expect(after.bytesSentByNIO == before.bytesSentByNIO)
        #expect(throws: ChannelError.ioOnClosedChannel) { try connection.write([1]) }
    }

    /// The channel's descriptor number is reused while the stream lives.
    @Test func everyStreamReachesItsOwnReader() throws {
        let house = try servers.house()
        var all: [(RawClient, AdoptedStream)] = []
        for index in 0..<40 {
            all.append(try house.stream(index))
            if index % 3 == 2 {
                let (client, stream) = all.removeFirst()
                try stream.close()
                #expect(throws: TestFailure.self) { try client.read(1) }
            }
            for (place, (client, stream)) in all.enumerated() {
                let bytes = pattern(100 + place, seed: index * 50 + place)
                #expect(try stream.send(bytes) == .sent)
                #expect(try client.read(bytes.count) == bytes)
            }
        }
        #expect(try house.streams.countNow == all.count)
    }

    @Test func onlyAQuietOpenConnectionOfHTTP1CanLeave() throws {
        let house = try servers.house { $0.sendBuffer = 4096 }
        let (client, connection) = try house.connect()
        #expect(try house.adopt(connection)?.send([1]) == .sent)
        #expect(try client.read(1) == [1])
        #expect(try house.adopt(connection) == nil)
        let (web, other) = try house.connect(1) { $0.protocols = ["h2"] }
        #expect(try house.adopt(other) == nil)
        try other.write([2])
        #expect(try web.read(1) == [2])
        // With something queued, and then without.
        let (full, busy) = try house.connect(2) { $0.receiveBuffer = 4096 }
        let written = try busy.channel.eventLoop.submit {
            busy.channel.writeAndFlush(ByteBuffer(bytes: pattern(500_000)))
        }.wait()
        #expect(try house.adopt(busy) == nil)
        #expect(try full.read(500_000) == pattern(500_000))
        try written.wait()
        let stream = try #require(try house.adopt(busy, name: 2))
        #expect(try stream.send([7]) == .sent)
        #expect(try full.read(1) == [7])
        let (leaving, half) = try house.connect(3)
        leaving.sayGoodbye()
        half.seen.wait { $0.contains(.inputClosed) }
        #expect(try house.adopt(half) == nil)
    }

    @Test func whileTheSocketIsFullEverythingQueuesInOrder() throws {
        let (_, client, stream) = try slow()
        var expected: [UInt8] = []
        var answers: [StreamWrite] = []
        var round = 0
        while try stream.queuedBytes <= 30 * 1500, round < 2000 {
            let bytes = pattern(1500, seed: round)
            answers.append(try stream.send(bytes))
            expected += bytes
            round += 1
        }
        #expect(answers.first == .sent)
        #expect(answers.last == .queued)
        // While the kernels' buffers fill, a short queue may drain.
        let before = stream.news.now
        #expect(before.allSatisfy { $0 == .drained })
        #expect(try client.read(expected.count) == expected)
        stream.news.wait { $0 == before + [.drained] }
        #expect(try stream.queuedBytes == 0)
        #expect(try stream.send(pattern(100)) == .sent)
        #expect(try client.read(100) == pattern(100))
    }

    @Test func everyAnswerOfAStalledReaderIsTrue() throws {
        let (_, client, stream) = try slow()
        // Draining and filling again, many times: each byte arrives once.
        var expected: [UInt8] = []
        var answers: [StreamWrite] = []
        for round in 0..<60 {
            for piece in 0..<12 {
                let bytes = pattern(700 + 13 * piece, seed: round * 100 + piece)
                answers.append(try stream.send(bytes))
                expected += bytes
            }
            let half = expected.count / 2
            #expect(try client.read(half) == Array(expected[..<half]))
            expected.removeFirst(half)
        }
        #expect(try client.read(expected.count) == expected)
        let firstQueued = try #require(answers.firstIndex(of: .queued))
        #expect(answers[firstQueued...].contains(.sent))
        #expect(!answers.contains(.refused))
    }

    @Test func aQueueHasAnEnd() throws {
        let (_, client, stream) = try slow { $0.settings.queuedBytesMax = 20_000 }
        var expected: [UInt8] = []
        var last = StreamWrite.sent
        var round = 0
        while last != .refused, round < 1000 {
            let bytes = pattern(1000, seed: round)
            last = try stream.send(bytes)
            if last != .refused { expected += bytes }
            round += 1
        }
        #expect(last == .refused)
        #expect(try stream.queuedBytes <= 21_000)
        #expect(try client.read(expected.count) == expected)
    }

    /// Streams and channels of one loop share the memory that OpenSSL reads from and writes to.
    @Test func failingConnectionsLeaveOthersAlone() throws {
        let house = try servers.house {
            $0.echoes = true
            $0.settings.closeTimeout = .milliseconds(50)
        }
        let (talker, _) = try house.connect(0)
        let good = try (1...8).map { try house.stream($0) }
        for round in 0..<40 {
            let accepted = house.server.connections.now.count
            let plain = try RawClient(port: house.server.port, nil)
            switch round % 5 {
            case 0: plain.send("GET / HTTP/1.1\r\n\r\n")
            case 1: plain.send(pattern(300, seed: round))
            case 2:
                let bad = try house.server.client { $0.protocols = ["spdy/3"] }
                #expect(throws: TestFailure.self) { try bad.handshake() }
            case 3:
                let bad = try house.server.client().handshake()
                try breakProtocol(bad)
            default:
                let (bad, stream) = try house.stream(accepted)
                try breakProtocol(bad)
                stream.news.wait { $0 == [.inputClosed] }
            }
            let words = pattern(200, seed: round)
            try talker.write(words)
            #expect(try talker.read(200) == words)
            for (index, (client, stream)) in good.enumerated() {
                try client.write(pattern(50 + index, seed: round))
                let pushed = pattern(100 + round, seed: index)
                #expect(try stream.send(pushed) == .sent)
                #expect(try client.read(pushed.count) == pushed)
            }
            withExtendedLifetime(plain) {}
        }
    }

    /// Sends an invalid record, and expects an alert.
    private func breakProtocol(_ client: RawClient) throws {
        try client.sendPlain([23, 3, 3, 0, 60] + pattern(60))
        let error = #expect(throws: TestFailure.self) { try client.read(1) }
        #expect(error?.description.contains("bad record mac") == true)
    }

    @Test func whatAReaderSaysIsDropped() throws {
        let house = try servers.house { $0.settings.readerInput = .unlimited }
        let (client, connection) = try house.connect()
        let stream = try #require(try house.adopt(connection))
        for round in 0..<20 {
            try client.write(pattern(60_000, seed: round))
            #expect(try stream.send(pattern(10, seed: round)) == .sent)
            #expect(try client.read(10) == pattern(10, seed: round))
        }
        #expect(connection.received.now.isEmpty)
        #expect(stream.news.now.isEmpty)
    }

    @Test func aKeyUpdateIsAnsweredAndGoesUnnoticed() throws {
        let house = try servers.house()
        let (client, stream) = try house.stream { $0.version = TLS1_3_VERSION }
        for round in 0..<20 {
            #expect(SSL_key_update(client.ssl, SSL_KEY_UPDATE_REQUESTED) == 1)
            try client.write(pattern(100, seed: round))
            #expect(try stream.send(pattern(10, seed: round)) == .sent)
            #expect(try client.read(10) == pattern(10, seed: round))
        }
        #expect(stream.news.now.isEmpty)
    }

    @Test func aPeerThatDemandsAnswersAndReadsNoneIsClosed() throws {
        let house = try servers.house {
            $0.settings.streamSendBufferBytes = 4096
            $0.settings.readerInput = .unlimited
        }
        let (client, stream) = try house.stream {
            $0.version = TLS1_3_VERSION
            $0.receiveBuffer = 2048
        }
        while try stream.send(pattern(1000)) == .sent {}
        var rounds = 0
        // While the kernels' buffers fill, a short queue may drain.
        while !stream.news.now.contains(.inputClosed), rounds < 20_000 {
            guard SSL_key_update(client.ssl, SSL_KEY_UPDATE_REQUESTED) == 1,
                (try? client.write([1])) != nil
            else { break }
            rounds += 1
        }
        stream.news.wait { $0.last == .inputClosed }
        #expect(rounds > 100)
        #expect(try house.streams.countNow == 0)
    }

    @Test func anEndIsSaidAndWaitsForThePeers() throws {
        let house = try servers.house()
        let (client, stream) = try house.stream()
        #expect(try stream.send(pattern(10)) == .sent)
        try stream.end(pattern(20, seed: 1))
        #expect(try client.readToGoodbye() == pattern(10) + pattern(20, seed: 1))
        #expect(try stream.send([1]) == .refused)
        #expect(try house.streams.countNow == 1)
        // Whatever it still sends is discarded.
        try client.write(pattern(30_000))
        client.sayGoodbye()
        client.shutdownSending()
        try house.streams.loop.flatSubmit { house.streams.emptied() }.wait()
        #expect(stream.news.now.isEmpty)
    }

    @Test func aPeerThatDoesNotEndIsNotWaitedForLong() throws {
        let house = try servers.house { $0.settings.closeTimeout = .milliseconds(50) }
        let held = try (0..<3).map { try house.stream($0) }
        for (_, stream) in held { try stream.end() }
        try house.streams.loop.flatSubmit { house.streams.emptied() }.wait()
        for (client, _) in held { #expect(try client.readToGoodbye().isEmpty) }
    }

    @Test func whatIsQueuedLeavesBeforeTheEnd() throws {
        let (_, client, stream) = try slow()
        var expected: [UInt8] = []
        while try stream.queuedBytes < 50_000 {
            let bytes = pattern(1500, seed: expected.count)
            #expect(try stream.send(bytes) != .refused)
            expected += bytes
        }
        try stream.end([9])
        #expect(try client.readToGoodbye() == expected + [9])
    }

    @Test func aPeersGoodbyeEndsTheStream() throws {
        let house = try servers.house()
        let (client, stream) = try house.stream()
        client.sayGoodbye()
        #expect(try client.readToGoodbye().isEmpty)
        stream.news.wait { $0 == [.inputClosed] }
        #expect(try stream.send([1]) == .refused)
        client.shutdownSending()
        try house.streams.loop.flatSubmit { house.streams.emptied() }.wait()
    }

    @Test func theEndOfTCPEndsTheStream() throws {
        let house = try servers.house()
        let (client, stream) = try house.stream()
        client.shutdownSending()
        stream.news.wait { $0 == [.inputClosed] }
        #expect(try house.streams.countNow == 0)
        #expect(try stream.send([1]) == .refused)
    }

    @Test func aResetEndsTheStream() throws {
        let house = try servers.house()
        let (client, stream) = try house.stream()
        // The loop is busy while the reset arrives, so that `send` is the first to notice it.
        let (socket, port) = (client.socket, house.server.port)
        let answers = try stream.onLoop {
            try RawClient.reset(socket, port: port)
            return (0..<3).map { _ in stream.sendNow(pattern(100)) }
        }
        #expect(answers.last == .refused)
        stream.news.wait { $0 == [.inputClosed] }
        #expect(try house.streams.countNow == 0)
        try stream.close()
    }

    @Test func stoppingEndsAll() throws {
        let house = try StreamHouse()
        defer { house.server.stop() }
        let held = try (0..<5).map { try house.stream($0) }
        try held[0].1.end()
        try house.streams.onLoop { house.streams.stop() }
        #expect(try house.streams.countNow == 0)
        for (index, (client, stream)) in held.enumerated() where index > 0 {
            #expect(throws: TestFailure.self) { try client.read(1) }
            #expect(try stream.send([1]) == .refused)
        }
    }
}
