import COpenSSL
import Foundation
import GatewayTestSupport
import Glibc
import NIOCore
import Testing

@testable import GatewayTLS

@Suite(.serialized) struct ClosingTests {
    private let servers = TestServers()

    /// Returns a server that does not echo, one open client and its connection.
    private func connected(
        _ change: (inout TestServer.Options) -> Void = { _ in },
        client: (inout RawClient.Options) -> Void = { _ in }
    ) throws -> (TestServer, RawClient, Connection) {
        let server = try servers.start {
            $0.echoes = false
            change(&$0)
        }
        let client = try server.client(client).handshake()
        let connection = try server.connection()
        connection.seen.wait { $0.contains(.open(nil)) }
        return (server, client, connection)
    }

    @Test(arguments: [true, false])
    func closingSaysGoodbyeAndWaitsForThePeers(halfClosure: Bool) throws {
        let (_, client, connection) = try connected { $0.halfClosure = halfClosure }
        let closed = connection.channel.close()
        #expect(try client.readToGoodbye().isEmpty)
        #expect(connection.channel.isActive)
        client.sayGoodbye()
        try closed.wait()
        connection.seen.wait { $0.contains(.inactive) }
        #expect(try !connection.onLoop { $0.inputTruncated })
    }

    @Test func aPeerThatDoesNotAnswerIsNotWaitedForLong() throws {
        let (_, client, connection) = try connected {
            $0.settings.closeTimeout = .milliseconds(50)
        }
        try connection.channel.close().wait()
        #expect(try client.readToGoodbye().isEmpty)
    }

    @Test func whatThePeerStillSendsWhileWeCloseIsDropped() throws {
        let (_, client, connection) = try connected()
        let closed = connection.channel.close()
        #expect(try client.readToGoodbye().isEmpty)
        try client.write(pattern(50_000))
        client.sayGoodbye()
        try closed.wait()
        #expect(connection.received.now.isEmpty)
    }

    /// Then it reads what it was sent.
    @Test func aPeerThatIsStillSendingIsWaitedFor() throws {
        let (_, client, connection) = try connected {
            $0.settings.closeTimeout = .milliseconds(1)
            $0.settings.lingerSilence = .hours(1)
        }
        try connection.onLoop { $0.lingersUntil = NIODeadline.now() + .hours(1) }
        try connection.write(pattern(3))
        let closed = connection.channel.close()
        try connection.channel.eventLoop.scheduleTask(in: .milliseconds(50)) {}.futureResult.wait()
        #expect(connection.channel.isActive)
        try client.write(pattern(100_000))
        #expect(try client.readToGoodbye() == pattern(3))
        client.sayGoodbye()
        try closed.wait()
        #expect(connection.received.now.isEmpty)
    }

    @Test func aPeerThatIsSilentIsNotWaitedForLong() throws {
        let (_, client, connection) = try connected {
            $0.settings.lingerSilence = .milliseconds(50)
        }
        try connection.onLoop { $0.lingersUntil = NIODeadline.now() + .hours(1) }
        try connection.channel.close().wait()
        #expect(try client.readToGoodbye().isEmpty)
    }

    /// Not even if the gateway stops.
    @Test(arguments: [false, true]) func aPeerThatSendsWithoutEndIsCutOff(isAsked: Bool) throws {
        let (_, client, connection) = try connected {
            $0.settings.closeTimeout = .milliseconds(50)
            $0.settings.lingerSilence = .milliseconds(20)
        }
        let wait = isAsked ? TimeAmount.hours(1) : .milliseconds(100)
        try connection.onLoop { $0.lingersUntil = NIODeadline.now() + wait }
        let closed = connection.channel.close()
        if isAsked { connection.channel.close(promise: nil) }
        #expect(throws: TestFailure.self) {
            while true { try client.write(pattern(1_000)) }
        }
        try closed.wait()
    }

    @Test func thePeersGoodbyeLeavesOurHalfOpen() throws {
        let (_, client, connection) = try connected()
        try client.write(pattern(500))
        client.sayGoodbye()
        connection.seen.wait { $0.contains(.inputClosed) }
        #expect(connection.received.now == pattern(500))
        #expect(try !connection.onLoop { $0.inputTruncated })
        try connection.write(pattern(2000, seed: 1))
        #expect(try client.read(2000) == pattern(2000, seed: 1))
        // The end of TCP after `close_notify` changes nothing.
        client.shutdownSending()
        try connection.write([1])
        #expect(try client.read(1) == [1])
        try connection.channel.close().wait()
        #expect(try client.readToGoodbye().isEmpty)
        #expect(connection.seen.now == [.open(nil), .inputClosed, .inactive])
    }

    @Test func withoutHalfClosureThePeersGoodbyeIsAnsweredAndEnds() throws {
        let (_, client, connection) = try connected { $0.halfClosure = false }
        client.sayGoodbye()
        #expect(try client.readToGoodbye().isEmpty)
        connection.seen.wait { $0.contains(.inactive) }
        #expect(connection.seen.now == [.open(nil), .inactive])
        #expect(try !connection.onLoop { $0.inputTruncated })
    }

    @Test func anEndWithoutGoodbyeIsMarked() throws {
        let (_, client, connection) = try connected()
        try client.write(pattern(100))
        client.shutdownSending()
        connection.seen.wait { $0.contains(.inputClosed) }
        #expect(try connection.onLoop { $0.inputTruncated })
        try connection.write([1, 2])
        #expect(try client.read(2) == [1, 2])
        try connection.channel.close().wait()
        #expect(try client.readToGoodbye().isEmpty)
    }

    @Test(arguments: [true, false])
    func aResetEndsTheConnection(halfClosure: Bool) throws {
        let (server, client, connection) = try connected { $0.halfClosure = halfClosure }
        try RawClient.reset(client.socket, port: server.port)
        connection.seen.wait { $0.contains(.inactive) }
        #expect(try connection.onLoop { $0.inputTruncated })
        #expect(throws: (any Error).self) { try connection.write([1]) }
    }

    @Test func closingOurHalfLeavesThePeersOpen() throws {
        let (_, client, connection) = try connected()
        try connection.write(pattern(70))
        try connection.channel.close(mode: .output).wait()
        #expect(try client.readToGoodbye() == pattern(70))
        connection.seen.wait { $0.contains(.outputClosed) }
        #expect(throws: ChannelError.outputClosed) { try connection.write([1]) }
        try client.write(pattern(900, seed: 4))
        connection.received.wait { $0.count == 900 }
        #expect(connection.received.now == pattern(900, seed: 4))
        client.sayGoodbye()
        connection.seen.wait { $0.contains(.inactive) }
        #expect(try !connection.onLoop { $0.inputTruncated })
    }

    /// Includes both of the peer's ways to end its side before ours; NIO would close at once then.
    @Test(arguments: [0, 1, 2], [CloseMode.all, .output])
    func whatIsQueuedLeavesBeforeTheClose(peerEnds: Int, mode: CloseMode) throws {
        let (_, client, connection) = try connected(
            { $0.sendBuffer = 8192 }, client: { $0.receiveBuffer = 4096 })
        if peerEnds == 1 { client.sayGoodbye() }
        if peerEnds == 2 { client.shutdownSending() }
        if peerEnds > 0 { connection.seen.wait { $0.contains(.inputClosed) } }
        let all = pattern(600_000)
        let channel = connection.channel
        let (written, closed) = try channel.eventLoop.submit {
            let written = channel.writeAndFlush(ByteBuffer(bytes: all))
            return (written, channel.close(mode: mode))
        }.wait()
        #expect(try connection.onLoop { $0.queuedBytes } > 0)
        #expect(try client.readToGoodbye() == all)
        try written.wait()
        if peerEnds == 0, mode == .all { client.sayGoodbye() }
        try closed.wait()
    }

    @Test func aPeerThatBreaksTheProtocolGetsAnAlert() throws {
        let (_, client, connection) = try connected()
        try client.sendPlain([23, 3, 3, 0, 40] + pattern(40))
        let error = #expect(throws: TestFailure.self) { try client.readToGoodbye() }
        #expect(error?.description.contains("bad record mac") == true)
        shutdown(client.socket, Int32(SHUT_RDWR))
        connection.seen.wait { $0.contains(.inactive) }
        #expect(
            connection.seen.now == [.open(nil), .failed(.protocolViolation(.malformed)), .inactive])
    }

    /// A client that rejects what it got has violated nothing.
    @Test func aPeerThatSendsAnAlertIsNotCounted() throws {
        let (server, client, connection) = try connected()
        try connection.onLoop { tls in
            let noise = ByteBuffer(bytes: [23, 3, 3, 0, 40] + pattern(40))
            tls.context?.writeAndFlush(NIOAny(noise), promise: nil)
        }
        #expect(throws: TestFailure.self) { try client.read(1) }
        connection.seen.wait { $0.contains(.failed(.truncated)) }
        #expect(server.counters.snapshot().connectionsEnded.values.allSatisfy { $0 == 0 })
    }
}
