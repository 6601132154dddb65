import COpenSSL
import Foundation
import GatewayTLS
import GatewayTestSupport
import Glibc
import NIOCore
import Testing

/// Connections between their first byte and their first request.
@Suite(.serialized) struct TLSAcceptorTests {
    private let servers = TestServers()

    private func server(_ change: (inout TestServer.Options) -> Void = { _ in }) throws
        -> TestServer
    {
        try servers.start {
            $0.waits = true
            $0.echoes = false
            change(&$0)
        }
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func aConnectionIsHandedOnWithItsFirstBytes(version: Int32) throws {
        let server = try server()
        let client = try server.client { $0.version = version }.handshake()
        server.waitForCounts("the handshake") { $0.handshakesFull == 1 }
        #expect(server.connections.now.isEmpty)
        try client.write(pattern(700))
        let connection = try server.connection()
        connection.received.wait { $0.count == 700 }
        #expect(connection.received.now == pattern(700))
        try client.write(pattern(50_000, seed: 1))
        connection.received.wait { $0.count == 50_700 }
        #expect(connection.received.now == pattern(700) + pattern(50_000, seed: 1))
        try connection.write(pattern(9_000, seed: 2))
        #expect(try client.read(9_000) == pattern(9_000, seed: 2))
    }

    @Test(arguments: [(9_000, 40_000), (3_600_000, 3_600_000), (.max, .max)] as [(Int64, Int32)])
    func `the kernel ends a silent connection with the server's patience, 40 s at least`(
        patience: Int64, milliseconds: Int32
    ) throws {
        let server = try server { $0.patience = patience }
        let client = try server.client().handshake()
        try client.write(pattern(1))
        let channel = try server.connection().channel
        let timeout = NIOBSDSocket.Option(rawValue: TCP_USER_TIMEOUT)
        #expect(try channel.getOption(.tcpOption(timeout)).wait() == milliseconds)
    }

    /// Bytes that arrive with the last message of the handshake, in pieces of any size, are not
    /// lost.
    @Test func theFirstBytesMayComeInAnyPieces() throws {
        let server = try server()
        for (index, sizes) in [[1], [7, 100], [64, 3, 1000], [10_000]].enumerated() {
            let client = try server.client().handshake()
            try client.writeInPieces(pattern(3_000, seed: index), sizes: sizes)
            let connection = try server.connection(index)
            connection.received.wait { $0.count == 3_000 }
            #expect(connection.received.now == pattern(3_000, seed: index))
        }
    }

    @Test func theEndMayComeWithTheFirstBytes() throws {
        let server = try server()
        let client = try server.client().handshake()
        let last = try client.withheld {
            try client.write(pattern(300))
            client.sayGoodbye()
        }
        try client.sendPlain(last)
        let connection = try server.connection()
        connection.seen.wait { $0.contains(.inputClosed) }
        #expect(connection.received.now == pattern(300))
        #expect(try !connection.onLoop { $0.inputTruncated })
        try connection.write(pattern(80, seed: 1))
        #expect(try client.read(80) == pattern(80, seed: 1))
    }

    @Test func whoSaysNothingIsToldGoodbyeAtTheDeadline() throws {
        let server = try server { $0.settings.firstRequestTimeout = .milliseconds(60) }
        let client = try server.client().handshake()
        #expect(try client.readToGoodbye().isEmpty)
        client.sayGoodbye()
        client.shutdownSending()
        server.waitForNobody()
        #expect(server.connections.now.isEmpty)
        #expect(server.counters.snapshot().handshakesFailed.values.allSatisfy { $0 == 0 })
    }

    @Test func aPeerThatSaysGoodbyeAtOnceIsAnswered() throws {
        let server = try server()
        let client = try server.client().handshake()
        client.sayGoodbye()
        #expect(try client.readToGoodbye().isEmpty)
        client.shutdownSending()
        server.waitForNobody()
        let other = try server.client().handshake()
        try RawClient.reset(other.socket, port: server.port)
        shutdown(other.socket, Int32(SHUT_RDWR))
        server.waitForNobody()
        #expect(server.connections.now.isEmpty)
    }

    @Test func aPeerThatEndsItsSideWithoutAWordIsToldGoodbye() throws {
        let server = try server()
        let client = try server.client().handshake()
        client.shutdownSending()
        #expect(try client.readToGoodbye().isEmpty)
        server.waitForNobody()
        #expect(server.connections.now.isEmpty)
        #expect(server.counters.snapshot().handshakesFailed.values.allSatisfy { $0 == 0 })
    }

    @Test func aPeerThatBreaksTheProtocolBeforeItAsksGetsAnAlert() throws {
        let server = try server()
        let client = try server.client().handshake()
        try client.sendPlain([23, 3, 3, 0, 40] + pattern(40))
        let error = #expect(throws: TestFailure.self) { try client.readToGoodbye() }
        #expect(error?.description.contains("bad record mac") == true)
        shutdown(client.socket, Int32(SHUT_RDWR))
        server.waitForNobody()
        #expect(server.connections.now.isEmpty)
    }

    /// A peer demands answers and does not read them: the memory for it is bounded, and its first
    /// bytes are handed on once it reads.
    @Test func whatThePeerDoesNotTakeIsWaitedFor() throws {
        let server = try server { $0.settings.arrivalInput = .unlimited }
        let client = try server.client {
            $0.version = TLS1_3_VERSION
            $0.receiveBuffer = 2_048
        }.handshake()
        for _ in 0..<4_000 {
            #expect(SSL_key_update(client.ssl, SSL_KEY_UPDATE_REQUESTED) == 1)
            #expect(SSL_do_handshake(client.ssl) == 1)
        }
        try client.write(pattern(10))
        try server.connection().received.wait { $0.count == 10 }
        try server.connection().write([1, 2, 3])
        #expect(try client.read(3) == [1, 2, 3])
    }

    @Test func noMoreAreAcceptedThanThereMayBe() throws {
        let server = try server { $0.connectionsMax = 2 }
        let first = try server.client().handshake()
        let second = try server.client().handshake()
        try first.write([1])
        try server.connection().received.wait { $0 == [1] }
        // The kernel has accepted it; the server has not, and has not answered.
        let third = try server.client()
        server.waitForAccepted(2)
        second.sayGoodbye()
        second.shutdownSending()
        try third.handshake()
        try third.write([3])
        try server.connection(1).received.wait { $0 == [3] }
        #expect(server.counters.snapshot().handshakesFull == 3)
        #expect(server.counters.snapshot().handshakesFailed.values.allSatisfy { $0 == 0 })
    }

    @Test func stoppingEndsInOrderWhatHasNoWishYet() throws {
        let server = try server { $0.threads = 2 }
        let served = try server.client().handshake()
        try served.write([1])
        try server.connection().received.wait { $0 == [1] }
        let waiting = try server.client().handshake()
        let silent = try RawClient(port: server.port, nil)
        server.waitForAccepted(3)
        let heard = Record<Bool>(false)
        let descriptor = waiting.socket
        Thread.detachNewThread {
            // The client ends its side once it has read the server's end.
            RawClient.drain(descriptor)
            shutdown(descriptor, Int32(SHUT_WR))
            heard.change { $0 = true }
        }
        server.stopArrivals()
        heard.wait("the server's end") { $0 }
        #expect(silent.readUntil().bytes.isEmpty)
        #expect(throws: TestFailure.self) { try RawClient(port: server.port, nil) }
        // A connection that was handed on continues.
        try served.write([2])
        try server.connection().received.wait { $0 == [1, 2] }
    }

    @Test func aPortThatIsTakenIsAnError() throws {
        let server = try server()
        let error = #expect(throws: IOError.self) {
            try ListeningSocket(host: "127.0.0.1", port: server.port)
        }
        #expect(error?.errnoCode == EADDRINUSE)
    }

    @Test func `a port is held before connections are accepted, and refuses them`() throws {
        let socket = try ListeningSocket(host: "127.0.0.1", port: 0)
        let error = #expect(throws: IOError.self) {
            try ListeningSocket(host: "127.0.0.1", port: socket.port).listen()
        }
        #expect(error?.errnoCode == EADDRINUSE)
        #expect(throws: TestFailure.self) { try RawClient(port: socket.port, nil) }
        try socket.listen()
        _ = try RawClient(port: socket.port, nil)
    }

    @Test func bothFamiliesOfAddressesAreListenedAt() throws {
        let socket = try ListeningSocket(host: "::1", port: 0)
        #expect(socket.port > 0)
        #expect(try ListeningSocket(host: "localhost", port: 0).port > 0)
        #expect(throws: (any Error).self) { try ListeningSocket(host: "name.invalid", port: 0) }
    }
}
