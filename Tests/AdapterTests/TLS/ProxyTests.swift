import COpenSSL
import GatewayTestSupport
import Glibc
import NIOCore
import Testing

@testable import GatewayTLS

/// Connections of proxies that state the addresses of their clients.
@Suite(.serialized) struct ProxyTests {
    private let servers = TestServers()
    private let reasons = Record<[String]>([])

    /// A server that trusts a proxy at 127.0.0.1, unless told otherwise.
    private func server(
        trusts: [UInt8] = [127, 0, 0, 1], by proxyProtocol: ProxyProtocol = .proxyV2,
        _ change: (inout TestServer.Options) -> Void = { _ in }
    ) throws -> TestServer {
        try servers.start {
            $0.waits = true
            $0.echoes = false
            $0.settings.proxyProtocol = { $0.elementsEqual(trusts) ? proxyProtocol : nil }
            $0.settings.onHandshakeFailure = { [reasons] source, _, reason in
                reasons.change { $0.append("\(source): \(reason)") }
            }
            change(&$0)
        }
    }

    private func address(_ connection: Connection) throws -> String {
        try connection.onLoop { "\($0.peer.address)" }
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `the client's address counts`(version: Int32) throws {
        let server = try server()
        let headers = [
            (ProxyHeaderTests.tcp4(), "192.0.2.1"),
            (ProxyHeaderTests.tcp6([4, 0, 1, 0]), "2001:db8:707:707::/64"),
            (ProxyHeaderTests.header(0, [], command: 0x20), "127.0.0.1"),
        ]
        for (index, (header, expected)) in headers.enumerated() {
            let client = try server.client { $0.version = version }
            try client.sendPlain(header)
            try client.handshake().write([1])
            let connection = try server.connection(index)
            connection.received.wait { $0 == [1] }
            #expect(try address(connection) == expected)
        }
    }

    @Test func `the header may come in any pieces, and with the client's first bytes`() throws {
        let server = try server()
        let header = ProxyHeaderTests.tcp4([4, 0, 2, 0, 0])
        let slow = try server.client()
        for byte in header {
            try slow.sendPlain([byte])
            usleep(500)
        }
        try slow.handshake().write([1])
        try server.connection().received.wait { $0 == [1] }
        let quick = try server.client()
        // The kernel keeps the bytes until those of the handshake follow.
        #expect(
            Glibc.send(quick.socket, header, header.count, Int32(MSG_MORE))
                == header.count)
        try quick.handshake().write([2])
        let second = try server.connection(1)
        second.received.wait { $0 == [2] }
        #expect(try address(second) == "192.0.2.1")
    }

    @Test func `a trusted proxy that sends no header, or a broken one, is closed`() throws {
        let server = try server()
        #expect(throws: TestFailure.self) { try server.client().handshake() }
        reasons.wait { $0 == ["127.0.0.1: the proxy sent no PROXY header of version 2"] }
        for bytes in [
            Array("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n".utf8),
            ProxyHeaderTests.header(0x41, []), ProxyHeaderTests.tcp4([1]),
        ] {
            let client = try RawClient(port: server.port, preamble: bytes, nil)
            #expect(client.readUntil().bytes.isEmpty)
        }
        reasons.wait { $0.count == 4 }
        #expect(reasons.now[1].contains("version 1"))
        #expect(reasons.now[2].contains("unknown"))
        #expect(reasons.now[3].contains("malformed"))
        server.waitForNobody()
        #expect(server.connections.now.isEmpty)
        #expect(server.counters.snapshot().handshakesFailed[.other] == 4)
    }

    @Test func `nobody else can state an address`() throws {
        for proxyProtocol in [ProxyProtocol.proxyV2, .forwarded] {
            // The client connects from 127.0.0.1.
            let trusted: [UInt8] = [127, 0, 0, proxyProtocol == .proxyV2 ? 2 : 1]
            let server = try server(trusts: trusted, by: proxyProtocol)
            let client = try server.client()
            try client.sendPlain(ProxyHeaderTests.tcp4())
            #expect(throws: TestFailure.self) { try client.handshake() }
            let honest = try server.client().handshake()
            try honest.write([1])
            #expect(try address(server.connection()) == "127.0.0.1")
        }
        reasons.wait { $0.count == 2 }
        #expect(reasons.now.allSatisfy { $0.contains("127.0.0.1: the peer sent a PROXY header") })
    }

    @Test func `a silent proxy is closed at the deadline of the handshake`() throws {
        let server = try server { $0.settings.handshakeTimeout = .milliseconds(60) }
        for header in [[], Array(ProxyHeaderTests.tcp4().prefix(20)), ProxyHeaderTests.tcp4()] {
            let client = try RawClient(port: server.port, preamble: header, nil)
            #expect(client.readUntil().bytes.isEmpty)
        }
        server.waitForNobody()
        #expect(server.counters.snapshot().handshakesFailed[.timeout] == 3)
    }

    @Test func `a health check that connects and leaves is not reported`() throws {
        let server = try server()
        _ = try RawClient(port: server.port, nil)
        server.waitForCounts("the check") { $0.handshakesFailed[.other] == 1 }
        #expect(reasons.now.isEmpty)
    }

    @Test func `connections are limited by the client's address, not by the proxy's`() throws {
        let server = try server { $0.connectionsPerAddressMax = 2 }
        func client(_ last: UInt8) throws -> RawClient {
            var header = ProxyHeaderTests.tcp4()
            header[19] = last
            let client = try server.client()
            try client.sendPlain(header)
            return client
        }
        var held: [RawClient] = []
        for last: UInt8 in [1, 1, 2, 2, 3] { held.append(try client(last).handshake()) }
        let refused = try client(1)
        #expect(throws: TestFailure.self) { try refused.handshake() }
        #expect(server.counters.snapshot().connectionsRefused[.address] == 1)
        for client in held { client.sayGoodbye() }
        for client in held { client.shutdownSending() }
        server.waitForNobody()
        #expect(server.limit.addressCount == 0)
        _ = try client(1).handshake()
    }

    @Test func `a proxy that speaks HTTP is no single address`() throws {
        let server = try server(by: .forwarded) { $0.connectionsPerAddressMax = 1 }
        let clients = try (0..<3).map { _ in try server.client().handshake() }
        try clients[2].write([1])
        #expect(try address(server.connection()) == "127.0.0.1")
        #expect(try server.connection().onLoop { $0.peer.proxyProtocol } == .forwarded)
    }
}
