import COpenSSL
import Foundation
import GatewayTLS
import Glibc
import NIOCore
import NIOPosix
import Testing

/// The numbers are those of the six conditions under which a record may bypass NIO.
@Suite(.serialized) struct DirectPathTests {
    private func connected(
        _ change: (inout TestServer.Options) -> Void = { _ in },
        client: (inout RawClient.Options) -> Void = { _ in }
    ) throws -> (TestServer, RawClient, Connection) {
        var options = TestServer.Options()
        options.echoes = false
        change(&options)
        let server = try TestServer(nil, options)
        let client = try server.client(client).handshake()
        let connection = try server.connection()
        connection.seen.wait { $0.first == .open(client.alpn) }
        return (server, client, connection)
    }

    private func slow() throws -> (TestServer, RawClient, Connection) {
        // Small buffers on both sides: otherwise the kernel takes megabytes.
        try connected({ $0.sendBuffer = 8192 }, client: { $0.receiveBuffer = 4096 })
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func aRecordGoesStraightIntoTheSocket(version: Int32) throws {
        let (server, client, connection) = try connected({ _ in }) { $0.version = version }
        defer { server.stop() }
        let before = server.counters.snapshot()
        for size in [1, 500, 16_384, 50_000] {
            #expect(try connection.send(pattern(size)) == .sent)
            #expect(try client.read(size) == pattern(size))
        }
        #expect(try connection.send([]) == .sent)
        let after = server.counters.snapshot()
        #expect(after.bytesSentDirectly > 66_885)
        #expect(after.bytesSentDirectly < 67_500)
        #expect(after.bytesSentByNIO == before.bytesSentByNIO)
        #expect(try connection.onLoop { $0.queuedBytes } == 0)
    }

    /// Conditions 1 and 5.
    @Test func whileTheSocketIsFullEverythingQueuesInOrder() throws {
        let (server, client, connection) = try slow()
        defer { server.stop() }
        let drained = Record(0)
        try connection.onLoop { tls in
            tls.onDrained = {
                #expect(tls.queuedBytes == 0)
                drained.change { $0 += 1 }
            }
        }
        var expected: [UInt8] = []
        var answers: [DirectWrite] = []
        var round = 0
        while answers.filter({ $0 == .queued }).count < 40, round < 2000 {
            let bytes = pattern(1500, seed: round)
            answers.append(try connection.send(bytes))
            expected += bytes
            // Ordinary writes in between, flushed at once or by the next direct one.
            let more = pattern(333, seed: -round)
            let channel = connection.channel
            let flushes = round % 3 == 0
            try channel.eventLoop.submit {
                channel.write(ByteBuffer(bytes: more), promise: nil)
                if flushes { channel.flush() }
            }.wait()
            expected += more
            round += 1
        }
        #expect(answers.first == .sent)
        #expect(answers.last == .queued)
        #expect(try connection.onLoop { $0.queuedBytes } > 40 * 1500)
        #expect(drained.now == 0)
        try connection.channel.eventLoop.submit { connection.channel.flush() }.wait()
        #expect(try client.read(expected.count) == expected)
        drained.wait { $0 == 1 }
        #expect(try connection.onLoop { $0.queuedBytes } == 0)
        let before = server.counters.snapshot().bytesSentByNIO
        #expect(try connection.send(pattern(100)) == .sent)
        #expect(try client.read(100) == pattern(100))
        #expect(server.counters.snapshot().bytesSentByNIO == before)
    }

    @Test func everyAnswerOfAStalledReaderIsTrue() throws {
        let (server, client, connection) = try slow()
        defer { server.stop() }
        // Draining and filling again, many times: each kept byte arrives once.
        var expected: [UInt8] = []
        var direct = 0
        for round in 0..<60 {
            for piece in 0..<12 {
                let bytes = pattern(700 + 13 * piece, seed: round * 100 + piece)
                if try connection.send(bytes) == .sent { direct += 1 }
                expected += bytes
            }
            let half = expected.count / 2
            #expect(try client.read(half) == Array(expected[..<half]))
            expected.removeFirst(half)
        }
        #expect(try client.read(expected.count) == expected)
        #expect(direct > 60)
    }

    @Test func aQueueHasAnEnd() throws {
        let (server, client, connection) = try connected(
            {
                $0.sendBuffer = 8192
                $0.settings.queuedBytesMax = 20_000
            }, client: { $0.receiveBuffer = 4096 })
        defer { server.stop() }
        var expected: [UInt8] = []
        var last = DirectWrite.sent
        var round = 0
        while last != .refused(.queueFull), round < 1000 {
            let bytes = pattern(1000, seed: round)
            last = try connection.send(bytes)
            if last == .sent || last == .queued { expected += bytes }
            round += 1
        }
        #expect(last == .refused(.queueFull))
        #expect(try connection.onLoop { $0.queuedBytes } <= 21_000)
        #expect(try client.read(expected.count) == expected)
    }

    /// Condition 2, with connections of one loop that fail in every way while others work.
    @Test func failingConnectionsLeaveOthersAlone() throws {
        var options = TestServer.Options()
        options.settings.closeTimeout = .milliseconds(50)
        let server = try TestServer(nil, options)
        defer { server.stop() }
        let good = try (0..<8).map { _ in try server.client().handshake() }
        for round in 0..<40 {
            let socket = try RawClient.connect(port: server.port)
            switch round % 4 {
            case 0:
                let bytes = Array("GET / HTTP/1.1\r\n\r\n".utf8)
                _ = Glibc.send(socket, bytes, bytes.count, 0)
            case 1:
                let bytes = pattern(300, seed: round)
                _ = Glibc.send(socket, bytes, bytes.count, 0)
            case 2:
                let bad = try server.client { $0.protocols = ["spdy/3"] }
                #expect(throws: RawClient.Failed.self) { try bad.handshake() }
            default:
                let bad = try server.client().handshake()
                let noise: [UInt8] = [23, 3, 3, 0, 60] + pattern(60)
                _ = Glibc.send(bad.socket, noise, noise.count, 0)
                let error = #expect(throws: RawClient.Failed.self) { try bad.read(1) }
                #expect(error?.description.contains("bad record mac") == true)
            }
            for (index, client) in good.enumerated() {
                let bytes = pattern(200 + index, seed: round * 10 + index)
                try client.write(bytes)
                #expect(try client.read(bytes.count) == bytes)
                let pushed = pattern(100 + round, seed: index)
                #expect(try server.connection(index).send(pushed) == .sent)
                #expect(try client.read(pushed.count) == pushed)
            }
            Glibc.close(socket)
        }
    }

    /// Condition 3: with the socket's number in other hands, nothing is written to it.
    @Test(arguments: [false, true])
    func aClosedDescriptorIsForgotten(hasQueue: Bool) throws {
        let (server, client, connection) = try slow()
        defer { server.stop() }
        let channel = connection.channel
        let descriptor = try channel.eventLoop.submit {
            try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(
                of: NIOBSDSocket.Handle.self
            ) { $0 }
        }.wait()
        let number = try #require(descriptor)
        let answers = Record<[DirectWrite]>([])
        // Whoever gets the number next: here one end of a pair, whose other end must stay silent.
        let silent = Record<Int32>(-1)
        let send: @Sendable (TLSServerHandler) -> Void = { tls in
            if silent.now < 0 {
                let end = Self.otherEnd(ofPairWith: number)
                silent.change { $0 = end }
            }
            let bytes = pattern(100)
            let answer = bytes.withUnsafeBytes { tls.sealAndSend($0) }
            answers.change { $0.append(answer) }
        }
        if hasQueue {
            // NIO fails what is queued after the socket is closed and before `channelInactive`.
            try connection.onLoop { tls in
                channel.writeAndFlush(ByteBuffer(bytes: pattern(500_000)))
                    .assumeIsolated().whenFailure { _ in send(tls) }
                #expect(tls.queuedBytes > 0)
            }
        }
        var hard = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            client.socket, SOL_SOCKET, SO_LINGER, &hard, UInt32(MemoryLayout<linger>.size))
        let other = try RawClient.connect(port: server.port)
        dup2(other, client.socket)
        Glibc.close(other)
        connection.seen.wait { $0.contains(.inactive) }
        try connection.onLoop { send($0) }
        #expect(answers.now == Array(repeating: .refused(.closed), count: hasQueue ? 2 : 1))
        // Another test of this process may have been faster; then only the answers tell.
        guard silent.now >= 0 else { return }
        var piece = [UInt8](repeating: 0, count: 100)
        #expect(recv(silent.now, &piece, 100, Int32(MSG_DONTWAIT)) == -1)
        Glibc.close(silent.now)
        Glibc.close(number)
    }

    /// Opens pairs until one has the free descriptor `number`; answers its other end, -1 without.
    private static func otherEnd(ofPairWith number: Int32) -> Int32 {
        var spare: [Int32] = []
        defer { for descriptor in spare { Glibc.close(descriptor) } }
        for _ in 0..<64 {
            var ends: [Int32] = [-1, -1]
            guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { break }
            if ends[0] == number { return ends[1] }
            if ends[1] == number { return ends[0] }
            spare += ends
        }
        return -1
    }

    @Test func aSocketThatThePeerHasResetIsNotFatal() throws {
        let (server, client, connection) = try slow()
        defer { server.stop() }
        var hard = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            client.socket, SOL_SOCKET, SO_LINGER, &hard, UInt32(MemoryLayout<linger>.size))
        let socket = client.socket
        // The loop is busy while the reset arrives, so that `send` meets it first.
        let answers = try connection.onLoop { tls in
            let other = try RawClient.connect(port: server.port)
            dup2(other, socket)
            Glibc.close(other)
            let bytes = pattern(100)
            return (0..<3).map { _ in bytes.withUnsafeBytes { tls.sealAndSend($0) } }
        }
        #expect(answers.last == .refused(.closed))
        connection.seen.wait { $0.contains(.inactive) }
    }

    /// Condition 4: what goes directly is seen by no other handler, so its owner needs timers of its
    /// own.
    @Test func handlersBeforeTLSDoNotSeeDirectBytes() throws {
        let (server, client, connection) = try connected()
        defer { server.stop() }
        let channel = connection.channel
        let count = Record(0)
        try channel.eventLoop.submit {
            try channel.pipeline.syncOperations.addHandler(WriteCounter(count), position: .first)
        }.wait()
        #expect(try connection.send(pattern(10)) == .sent)
        #expect(count.now == 0)
        try connection.write(pattern(10))
        #expect(count.now == 1)
        #expect(try client.read(20) == pattern(10) + pattern(10))
    }

    /// Condition 6.
    @Test func connectionsOfHTTP2AreRefused() throws {
        let (server, client, connection) = try connected({ _ in }) { $0.protocols = ["h2"] }
        defer { server.stop() }
        #expect(try connection.send([1]) == .refused(.http2))
        try connection.write([2])
        #expect(try client.read(1) == [2])
        #expect(server.counters.snapshot().bytesSentDirectly == 0)
    }

    @Test func beforeTheHandshakeItIsRefused() throws {
        let server = try TestServer()
        defer { server.stop() }
        let client = try server.client()
        let connection = try server.connection()
        #expect(try connection.send([1]) == .refused(.handshaking))
        try client.handshake()
        connection.seen.wait { $0.contains(.open(nil)) }
        #expect(try connection.send([2]) == .sent)
        #expect(try client.read(1) == [2])
        connection.channel.close(promise: nil)
        #expect(try connection.send([3]) == .refused(.closed))
    }
}

private final class WriteCounter: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    private let count: Record<Int>

    init(_ count: Record<Int>) { self.count = count }

    func write(
        context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?
    ) {
        count.change { $0 += 1 }
        context.write(data, promise: promise)
    }
}
