import GatewayCore
import GatewayOperations
import GatewayTLS
import NIOCore
import NIOHTTP1
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

/// The field `Forwarded` (RFC 7239) of requests from trusted proxies.
@Suite struct ForwardedFieldTests {
    private static let proxies = TrustedProxies(
        ["10.0.0.0/8", "fd00::/8"].compactMap { AddressRange($0) }, by: .forwarded)

    private func client(_ fields: String...) throws -> String? {
        try ForwardedField.client(fields) { Self.proxies.contains($0) }?.description
    }

    @Test(
        arguments: [
            ("for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"),
            ("for=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"),
            ("For=\"[2001:db8::1]\"", "2001:db8::1"), ("FOR = 1.1.1.1", nil),
            ("for=\"192.0.2.1:47011\"", "192.0.2.1"), ("for=192.0.2.1:80", "192.0.2.1"),
            ("for=[2001:db8::1]:80", "2001:db8::1"), ("for=\"192.0.2.1:_port\"", "192.0.2.1"),
            ("proto=https ; for=192.0.2.1 ; host=\"a\\\"b,c\"", "192.0.2.1"),
            ("host=\"for=9.9.9.9\";for=192.0.2.1", "192.0.2.1"),
            ("for=\"192.0.\\2.1\"", "192.0.2.1"),
            // The last entry that is not of a trusted proxy.
            ("for=1.1.1.1, for=192.0.2.1", "192.0.2.1"),
            ("for=1.1.1.1, for=192.0.2.1, for=10.0.0.7", "192.0.2.1"),
            ("for=192.0.2.1, for=\"[fd00::1]\" , for=\"[::ffff:10.1.1.1]:9\"", "192.0.2.1"),
            ("for=10.0.0.1, for=10.0.0.2", "10.0.0.1"), (" , for=192.0.2.1,,", "192.0.2.1"),
            // A hidden client: what proxies before it say is not looked at.
            ("for=1.1.1.1, for=unknown", nil), ("for=1.1.1.1, for=_hidden", nil),
            ("for=1.1.1.1, for=\"_hidden:_port\"", nil), ("for=1.1.1.1, for=\"unknown:80\"", nil),
            ("for=1.1.1.1, by=10.0.0.1", nil), ("for=_hidden, for=10.0.0.7", "10.0.0.7"), ("", nil),
            (",", nil),
        ] as [(String, String?)])
    func `the client is the last that is not a proxy`(_ field: String, _ expected: String?) throws {
        guard field != "FOR = 1.1.1.1" else {
            // RFC 7239 allows no white space there.
            #expect(throws: ForwardedField.Malformed.self) { try client(field) }
            return
        }
        #expect(try client(field) == expected)
    }

    @Test func `several fields are one list`() throws {
        #expect(try client("for=1.1.1.1", "for=192.0.2.1") == "192.0.2.1")
        #expect(try client("for=192.0.2.1", "for=10.0.0.7") == "192.0.2.1")
        #expect(try client("for=192.0.2.1", "") == "192.0.2.1")
        #expect(try client() == nil)
        // What the client wrote itself is not read.
        #expect(try client("for=\"", "for=192.0.2.1") == "192.0.2.1")
    }

    @Test(arguments: [
        "for", "for=", "for=192.0.2.1 x", "for=\"192.0.2.1", "for=\"a\"b",
        "for=1.1.1.1;for=2.2.2.2",
        "for=300.0.0.1", "for=2001:db8::1", "for=\"2001:db8::1\"", "for=\"[192.0.2.1]\"",
        "for=\"[2001:db8::1\"", "for=\"[2001:db8::1]x\"", "for=\"192.0.2.1:\"", "for=name",
        "=1", "for=1.1.1.1;;x", "for=\"\\",
        // A client's open quotation mark swallows the entry of the proxy.
        "for=\"1.1.1.1\", for=\", for=192.0.2.1", "for=\", for=\"[2001:db8::1]:80\"",
        "for=1.1.1.1;x=\", for=\"[2001:db8::1]\"",
    ])
    func `a field of another form is refused`(_ field: String) {
        #expect(throws: ForwardedField.Malformed.self) { try client(field) }
    }

    /// Whatever a client sends, the proxy's entry after it decides, or the request is refused.
    @Test func `a client cannot choose its address`() throws {
        var random = SplitMix64(seed: 5)
        let letters = Array("for=\"\\,;[]:.1 _x\t")
        var accepted = 0
        for _ in 0..<20_000 {
            let own = String(
                (0..<Int.random(in: 0...24, using: &random)).compactMap { _ in
                    letters.randomElement(using: &random)
                })
            for (entry, address) in [
                ("for=192.0.2.1", "192.0.2.1"), ("for=\"[2001:db8::1]:7\"", "2001:db8::1"),
            ] {
                guard let found = try? client("\(own), \(entry)") else { continue }
                accepted += 1
                #expect(found == address, "\(own)")
            }
        }
        #expect(accepted > 100)
    }

    @Test func `only a trusted proxy's field counts`() throws {
        let mapped = [UInt8](repeating: 0, count: 10) + [255, 255, 10, 0, 0, 1]
        #expect(mapped.withUnsafeBytes { Self.proxies.proxyProtocol(of: $0) } == .forwarded)
        for other: [UInt8] in [[11, 0, 0, 1], [], [10, 0, 0], [UInt8](repeating: 0, count: 16)] {
            #expect(other.withUnsafeBytes { Self.proxies.proxyProtocol(of: $0) } == nil)
        }
    }
}

/// Bodies with a content coding, which are not read.
@Suite struct ContentCodingTests {
    private func body(_ fields: HTTPHeaders) async throws -> [UInt8] {
        let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "/", headers: fields)
        let request = GatewayRequest(head: head, body: .whole(ByteBuffer(string: "{}")))
        return try await request.bytes(upTo: 10)
    }

    @Test(arguments: ["gzip", "identity, gzip", "br", "x"])
    func `a body with a coding is 415 with the coding that is supported`(coding: String)
        async throws
    {
        let problem = try await #require(throws: ProblemDetails.self) {
            try await body(["Content-Encoding": coding])
        }
        #expect(problem.status == 415 && problem.code == "unsupported-content-encoding")
        #expect(problem.detail?.contains("Content-Encoding is \(coding);") == true)
        #expect(problem.answer.head.headers["Accept-Encoding"] == ["identity"])
        #expect(
            !Problem.unsupportedMediaType("").answer.head.headers.contains(
                name: "Accept-Encoding"))
    }

    @Test(arguments: ["identity", " Identity ", "", "identity,identity"])
    func `a body without one is read`(coding: String) async throws {
        #expect(try await body(["Content-Encoding": coding]) == Array("{}".utf8))
        #expect(try await body([:]) == Array("{}".utf8))
    }
}
