import COpenSSL
import Foundation
import GatewayTLS
import GatewayTestSupport
import NIOCore
import Testing

@Suite(.serialized) struct HandshakeTests {
    private let servers = TestServers()

    @Test(arguments: [(TLS1_2_VERSION, "TLSv1.2"), (TLS1_3_VERSION, "TLSv1.3")])
    func bytesGoBothWays(version: Int32, name: String) throws {
        let server = try servers.start()
        let client = try server.client { $0.version = version }
        try client.handshake()
        #expect(client.version == name)
        try client.write(Array("hello".utf8))
        #expect(try client.read(5) == Array("hello".utf8))
        let connection = try server.connection()
        #expect(try connection.onLoop { $0.protocolVersion } == name)
        #expect(try connection.onLoop { $0.cipherName } == client.cipher)
        #expect(client.cipher.contains("AES") && client.cipher.contains("128"))
        #expect(connection.seen.now == [.open(nil)])
        #expect(server.counters.snapshot().handshakesFull == 1)
    }

    @Test(arguments: [
        (["http/1.1", "h2"], "h2"), (["h2"], "h2"), (["spdy/3", "http/1.1"], "http/1.1"),
    ])
    func theServerPicksTheProtocolItPrefers(offered: [String], expected: String) throws {
        let server = try servers.start()
        let client = try server.client { $0.protocols = offered }.handshake()
        #expect(client.alpn == expected)
        let connection = try server.connection()
        connection.seen.wait { $0.contains(.open(expected)) }
        #expect(try connection.onLoop { $0.negotiatedProtocol } == expected)
    }

    /// The context is one for a listener that speaks HTTP/2.
    @Test func aListenerWithoutHTTP2DoesNotChooseIt() throws {
        let server = try servers.start { $0.settings.offersHTTP2 = false }
        let both = try server.client { $0.protocols = ["h2", "http/1.1"] }.handshake()
        #expect(both.alpn == "http/1.1")
        let new = try server.client { $0.protocols = ["h2"] }
        #expect(throws: TestFailure.self) { try new.handshake() }
        server.waitForCounts("a refusal") { $0.handshakesFailed[.alpn] == 1 }
    }

    @Test func aClientWithoutCommonProtocolIsRefused() throws {
        let server = try servers.start()
        let client = try server.client { $0.protocols = ["spdy/3"] }
        let error = #expect(throws: TestFailure.self) { try client.handshake() }
        #expect(error?.description.contains("no application protocol") == true)
        server.waitForCounts("a refusal") { $0.handshakesFailed[.alpn] == 1 }
    }

    @Test func theServersOrderOfSuitesWins() throws {
        let server = try servers.start()
        let client = try server.client {
            $0.suites = "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256"
        }.handshake()
        #expect(client.cipher == "TLS_AES_128_GCM_SHA256")
    }

    @Test func suitesCanBeLimited() throws {
        let server = try servers.start(
            TestServer.context { $0.suites = ["TLS_AES_256_GCM_SHA384"] })
        #expect(try server.client().handshake().cipher == "TLS_AES_256_GCM_SHA384")
        let refused = try server.client { $0.suites = "TLS_AES_128_GCM_SHA256" }
        #expect(throws: TestFailure.self) { try refused.handshake() }
    }

    @Test(arguments: [TLS1_VERSION, TLS1_1_VERSION])
    func anOlderVersionGetsTheVersionAlert(version: Int32) throws {
        let server = try servers.start()
        let client = try server.client {
            $0.version = version
            $0.weakest = true
        }
        let error = #expect(throws: TestFailure.self) { try client.handshake() }
        #expect(error?.description.contains("protocol version") == true)
        server.waitForCounts("a refusal") { $0.handshakesFailed[.version] == 1 }
    }

    @Test func plainHTTPGetsAnAlertAndTheEnd() throws {
        let server = try servers.start()
        let client = try RawClient(port: server.port, nil)
        client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(client.readUntil().bytes == [21, 3, 1, 0, 2, 2, 10])
        client.shutdownSending()
        server.waitForNobody()
        #expect(server.counters.snapshot().handshakesFailed[.plainHTTP] == 1)
        #expect(server.connections.now.isEmpty)
    }

    @Test(
        arguments: [
            pattern(5000, seed: 3), [UInt8](repeating: 0, count: 4_096),
            [UInt8](repeating: 0xFF, count: 100_000),
            Array("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n".utf8),
            [22, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3] + [UInt8](repeating: 0xAA, count: 508),
            [22, 3, 1, 0xFF, 0xFF] + [UInt8](repeating: 1, count: 0xFFFF),
            [20, 3, 3, 0, 1, 1], [21, 3, 3, 0, 2, 2, 40], [23, 3, 3, 0, 1, 0],
        ] as [[UInt8]])
    func noiseIsRefusedOnce(noise: [UInt8]) throws {
        let server = try servers.start()
        let client = try RawClient(port: server.port, nil)
        client.send(noise)
        #expect(client.readUntil().bytes.count <= 7, "an alert at most")
        client.shutdownSending()
        server.waitForNobody()
        #expect(server.counters.snapshot().handshakesFailed.values.reduce(0, +) == 1)
    }

    /// A rejected peer is disconnected at the deadline, whatever it sends until then.
    @Test func whoIsRefusedAndStaysIsClosed() throws {
        let server = try servers.start { $0.settings.closeTimeout = .milliseconds(50) }
        let client = try RawClient(port: server.port, nil)
        client.send(pattern(100, seed: 5))
        _ = client.readUntil()
        withExtendedLifetime(client) { server.waitForNobody() }
        #expect(server.counters.snapshot().handshakesFailed.values.reduce(0, +) == 1)
    }

    @Test func aHandshakeThatStallsIsClosedAtItsDeadline() throws {
        let server = try servers.start { $0.settings.handshakeTimeout = .milliseconds(80) }
        let silent = try RawClient(port: server.port, nil)
        let partial = try RawClient(port: server.port, nil)
        partial.send([22, 3, 1, 2, 0, 1, 0])
        #expect(silent.readUntil().bytes.isEmpty)
        #expect(partial.readUntil().bytes.isEmpty)
        server.waitForNobody()
        #expect(server.counters.snapshot().handshakesFailed[.timeout] == 2)
    }

    @Test func theDeadlineOfADoneHandshakeIsForgotten() throws {
        let server = try servers.start { $0.settings.handshakeTimeout = .milliseconds(150) }
        var done: RawClient?
        try blockUntil("a handshake ends in time") {
            done = try? server.client().handshake()
            try? done?.write([0])
            return (try? done?.read(1)) == [0]
        }
        let client = try #require(done)
        // A second connection that stalls proves that the deadline's time has passed.
        #expect(try RawClient(port: server.port, nil).readUntil().bytes.isEmpty)
        try client.write([1])
        #expect(try client.read(1) == [1])
    }

    @Test func aPeerThatLeavesDuringTheHandshakeIsCounted() throws {
        let server = try servers.start()
        for isReset in [false, true] {
            let client = try RawClient(port: server.port, nil)
            client.send([22, 3, 1])
            if isReset { try RawClient.reset(client.socket, port: server.port) }
        }
        // The reset opens one more connection, which also ends during the handshake.
        server.waitForCounts("three that left") { $0.handshakesFailed[.other] == 3 }
        server.waitForNobody()
    }

    @Test func withoutAutomaticReadingRecordsAreReadWhenAskedFor() throws {
        let server = try servers.start {
            $0.autoRead = false
            $0.readBytes = 100
            $0.echoes = false
        }
        let client = try server.client().handshake()
        let connection = try server.connection()
        connection.seen.wait { $0.contains(.open(nil)) }
        // One requested read delivers one whole record, however small the pieces are.
        connection.channel.read()
        let record = pattern(9000)
        try client.write(record)
        connection.received.wait("one record") { $0.count == record.count }
        #expect(connection.received.now == record)
    }

    @Test func aCommandLineClientVerifiesTheChain() throws {
        let server = try servers.start()
        let text = try TestCertificate.openssl([
            "s_client", "-connect", "127.0.0.1:\(server.port)", "-CAfile", Certificates.made.ca,
            "-verify_return_error", "-verify_ip", "127.0.0.1", "-alpn", "h2",
        ])
        #expect(text.contains("Verify return code: 0 (ok)"))
        #expect(text.contains("ALPN protocol: h2"))
    }

    @Test func renegotiationIsRefused() throws {
        let server = try servers.start()
        let client = try server.client { $0.version = TLS1_2_VERSION }.handshake()
        SSL_renegotiate(client.ssl)
        #expect(throws: TestFailure.self) {
            try client.handshake()
            _ = try client.read(1)
        }
        #expect(server.counters.snapshot().handshakesFull == 1)
    }
}
