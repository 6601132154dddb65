import GatewayTestSupport
import Testing

/// Peers that pretend to be somebody else behind a proxy.
@Suite("Proxies")
struct ProxyAttackTests {
    /// Starts a gateway on which an address may send two requests an hour.
    private static func gateway(_ proxies: String) throws -> any TestGateway {
        try GatewayConfiguration(["rates: { address: 1/1h burst 2 }", "proxies: \(proxies)"])
            .start(asProcess: true)
    }

    /// Returns the status of a request over a connection of its own; `nil` if it is not served.
    private static func status(
        _ gateway: any TestGateway, header: [UInt8] = [], fields: [String] = [],
        alpn: String = "http/1.1"
    ) -> Int? {
        guard
            let socket = try? RawClient(port: gateway.port, preamble: header, .init(alpn))
                .handshake()
        else { return nil }
        let lines = ["GET /.well-known/jwks.json HTTP/1.1", "Host: a"] + fields
        socket.send(lines.map { $0 + "\r\n" }.joined() + "\r\n")
        let answer = socket.readUntil { $0.count > 12 }.bytes
        return String(decoding: answer.prefix(12), as: UTF8.self).split(separator: " ").last
            .flatMap { Int($0) }
    }

    /// The header of the PROXY protocol, version 2, for a client 192.0.2.`last`.
    private static func header(_ last: UInt8) -> [UInt8] {
        [0x0D, 0x0A, 0x0D, 0x0A, 0, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A, 0x21, 0x11, 0, 12]
            + [192, 0, 2, last, 198, 51, 100, 1, 1, 2, 1, 0xBB]
    }

    @Test("The address that a trusted proxy states by the PROXY protocol counts")
    func proxyV2() async throws {
        try await elsewhere {
            let gateway = try Self.gateway("{ trusted: [127.0.0.0/8], protocol: proxyV2 }")
            for (last, expected) in [(1, 200), (1, 200), (1, 429), (2, 200)] as [(UInt8, Int)] {
                #expect(Self.status(gateway, header: Self.header(last)) == expected)
            }
            // `Forwarded` means nothing here.
            #expect(
                Self.status(gateway, header: Self.header(1), fields: ["Forwarded: for=9.9.9.9"])
                    == 429)
            #expect(Self.status(gateway) == nil)
            try blockUntil("it is logged") {
                gateway.standardErrorTail.contains("the proxy sent no PROXY header")
            }
        }
    }

    @Test("The address that a trusted proxy states by Forwarded counts")
    func forwarded() async throws {
        try await elsewhere {
            let gateway = try Self.gateway("{ trusted: [127.0.0.1], protocol: forwarded }")
            let expected: [(String, Int)] = [
                ("for=1.1.1.1, for=192.0.2.1", 200), ("for=2.2.2.2, for=192.0.2.1", 200),
                ("for=3.3.3.3, for=192.0.2.1", 429), ("for=\"[2001:db8::1]:5\"", 200),
                ("for=192.0.2.1, for=127.0.0.1", 429), ("for=\", for=192.0.2.1", 400),
                ("for=unknown", 200), ("for=_hidden", 200), ("for=unknown", 429),
            ]
            for (field, status) in expected {
                #expect(Self.status(gateway, fields: ["Forwarded: \(field)"]) == status, "\(field)")
            }
            #expect(
                Self.status(gateway, fields: ["Forwarded: for=\"", "Forwarded: for=192.0.2.1"])
                    == 429)
        }
    }

    @Test("Nobody else states an address")
    func untrusted() async throws {
        try await elsewhere {
            let gateway = try Self.gateway("{ trusted: [192.0.2.0/24], protocol: forwarded }")
            for (index, expected) in [200, 200, 429].enumerated() {
                let field = "Forwarded: for=8.8.8.\(index)"
                #expect(Self.status(gateway, fields: [field]) == expected)
            }
            #expect(Self.status(gateway, header: Self.header(1)) == nil)
            try blockUntil("it is logged") {
                gateway.standardErrorTail.contains("the peer sent a PROXY header")
            }
        }
    }
}
