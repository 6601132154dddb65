import GatewayTestSupport
import Testing
import WidgetModel

/// Bytes on an HTTP/1.1 connection that two servers could interpret differently, or that never end.
@Suite("HTTP/1.1 attacks", .othersUnaffected)
struct HTTP1AttackTests {
    private static let keys = "GET /.well-known/jwks.json HTTP/1.1\r\nHost: x\r\n"

    private func post(_ fields: String, _ rest: String = "") async throws -> String {
        let target = try await Target.shared()
        return "POST /v1/apps/\(Target.app)/changes HTTP/1.1\r\nHost: localhost\r\n"
            + "Authorization: Bearer \(target.backend)\r\n"
            + "Content-Type: application/cloudevents+json\r\n\(fields)\r\n\r\n\(rest)"
    }

    /// Sends a request and expects one refusal and the connection's end.
    private func expectEnd(
        _ request: String, _ status: Int = 400, _ code: String = "malformed",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let target = try await Target.shared()
        let conversation = try await target.converse(Array(request.utf8))
        #expect(conversation.answers.count == 1, sourceLocation: sourceLocation)
        #expect(conversation.isClosed, sourceLocation: sourceLocation)
        if let answer = conversation.answers.first {
            expectRefusal(answer, status, code, sourceLocation: sourceLocation)
        }
    }

    @Test(
        "Both Content-Length and Transfer-Encoding are 400, and what follows is no request",
        arguments: [
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 5",
        ])
    func lengthAndEncoding(_ fields: String) async throws {
        try await expectEnd(try await post(fields, "0\r\n\r\n" + Self.keys + "\r\n"))
    }

    @Test(
        "A Content-Length that is not one number is 400",
        arguments: [
            "Content-Length: 2\r\nContent-Length: 3", "Content-Length: 2\r\nContent-Length: 2",
            "Content-Length: 2, 2", "Content-Length: -2", "Content-Length: +2",
            "Content-Length: 0x2",
            "Content-Length: 99999999999999999999", "Content-Length: 2 2", "Content-Length:",
        ])
    func wrongLength(_ fields: String) async throws {
        try await expectEnd(try await post(fields, "{}"))
    }

    @Test(
        "A Transfer-Encoding other than chunked is 400",
        arguments: [
            "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity",
            "Transfer-Encoding : chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            "Transfer-Encoding: gzip", "Transfer-Encoding: \u{0B}chunked",
        ])
    func wrongEncoding(_ fields: String) async throws {
        try await expectEnd(try await post(fields, "0\r\n\r\n" + Self.keys + "\r\n"))
    }

    @Test(
        "Chunks that are none are 400",
        arguments: [
            "ZZ\r\n{}\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFFF\r\n", "-1\r\n{}\r\n", "2\n{}\n0\n\n",
            "2\r\n{}X\r\n0\r\n\r\n",
        ])
    func wrongChunks(_ chunks: String) async throws {
        try await expectEnd(try await post("Transfer-Encoding: chunked", chunks))
    }

    @Test(
        "Lines that end in a bare LF, fold or hold control characters are 400",
        arguments: [
            "GET /.well-known/jwks.json HTTP/1.1\nHost: x\n\n",
            "GET /.well-known/jwks.json HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
            "GET /.well-known/jwks.json HTTP/1.1\r\nHost: x\r\nX: a\u{0}b\r\n\r\n",
            "GET /.well-known/jwks.json HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n",
            "GET /.well-known/jwks.json HTTP/1.1\r\nHost: x\r\nX y: a\r\n\r\n",
            "GET /.well-known/jwks.json HTTP/1.1\r\nHost: x\r\n: a\r\n\r\n",
            "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "GET /\u{0} HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET / HTTP/7.3\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ])
    func brokenLines(_ request: String) async throws {
        try await expectEnd(request)
    }

    @Test(
        "An answer that is the last one says so and is, however that was asked for",
        arguments: [
            "HTTP/1.0\r\n", "HTTP/1.0\r\nConnection: keep-alive\r\n",
            "HTTP/1.1\r\nConnection: TE, Close\r\n",
        ])
    func lastAnswer(_ rest: String) async throws {
        let target = try await Target.shared()
        let request = "GET /.well-known/jwks.json \(rest)Host: x\r\n\r\n"
        let conversation = try await target.converse(Array(request.utf8))
        let answer = try #require(conversation.answers.first)
        #expect(answer.status == 200 && answer.headers["connection"] == "close")
        #expect(conversation.isClosed)
    }

    @Test("More than a hundred header fields are 431")
    func manyFields() async throws {
        let fields = (0..<150).map { "X-\($0): y\r\n" }.joined()
        try await expectEnd(Self.keys + fields + "\r\n", 431, "headers-too-large")
    }

    @Test("Header fields over 16 KiB together, or one of them, are 431", arguments: [1, 30])
    func bigFields(_ count: Int) async throws {
        let value = String(repeating: "s3cr3t", count: 5_000 / count)
        let fields = (0..<count).map { "X-\($0): \(value)\r\n" }.joined()
        try await expectEnd(Self.keys + fields + "\r\n", 431, "headers-too-large")
        let line = "GET /\(String(repeating: "s3cr3t", count: 5_000)) HTTP/1.1\r\nHost: x\r\n\r\n"
        try await expectEnd(line, 431, "headers-too-large")
    }

    @Test("Trailers without end are refused")
    func trailers() async throws {
        let trailers = (0..<2_000).map { "X-\($0): s3cr3t\r\n" }.joined()
        let request = try await post(
            "Transfer-Encoding: chunked", "2\r\n{}\r\n0\r\n\(trailers)\r\n")
        let target = try await Target.shared()
        let conversation = try await target.converse(Array(request.utf8))
        let answer = try #require(conversation.answers.first)
        #expect([400, 431].contains(answer.status))
        #expect(conversation.isClosed)
    }

    @Test("Pipelined requests are answered in order, and garbage behind them ends the connection")
    func pipelined() async throws {
        let target = try await Target.shared()
        let request =
            Self.keys + "\r\nGET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n" + Self.keys
            + "\r\nGARBAGE\r\n\r\n" + Self.keys + "\r\n"
        let conversation = try await target.converse(Array(request.utf8))
        let statuses = conversation.answers.map(\.status)
        // Valid requests may be lost with the invalid one after them, but nothing is answered out
        // of order.
        #expect(
            !statuses.isEmpty && statuses == Array([200, 404, 200, 400].prefix(statuses.count)))
        #expect(conversation.isClosed)
        let valid = Self.keys + "\r\nGET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n" + Self.keys + "\r\n"
        let answered = try await target.converse(Array(valid.utf8), answers: 3)
        #expect(answered.answers.map(\.status) == [200, 404, 200])
    }

    @Test(
        "A body of 10 MB is 413 before it was read, with Content-Length and chunked",
        arguments: [
            true, false,
        ])
    func hugeBody(_ hasLength: Bool) async throws {
        let target = try await Target.shared()
        let head = try await post(
            hasLength ? "Content-Length: 10485760" : "Transfer-Encoding: chunked")
        let conversation = try await elsewhere { () -> RawConversation in
            let socket = try RawClient(port: target.port, .init("http/1.1")).handshake()
            socket.send(head)
            let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 65_536)
            for _ in 0..<160 {
                let framed = Array("10000\r\n".utf8) + piece + Array("\r\n".utf8)
                guard socket.send(hasLength ? piece : framed) else { break }
            }
            let (bytes, isClosed) = socket.readUntil { !RawAnswer.all(in: $0).isEmpty }
            return RawConversation(answers: RawAnswer.all(in: bytes), isClosed: isClosed)
        }
        let answer = try #require(conversation.answers.first)
        expectRefusal(answer, 413, "too-large", says: "8388608")
    }

    @Test("A body that waits for 100 Continue is told to come, or refused")
    func expectation() async throws {
        let target = try await Target.shared()
        let wanted = try await post("Content-Length: 2\r\nExpect: 100-continue")
        let small = try await target.converse(Array(wanted.utf8), answers: 1)
        #expect(small.answers.first?.status == 100)
        let unwanted = try await post("Content-Length: 10485760\r\nExpect: 100-continue")
        let big = try await target.converse(Array(unwanted.utf8), answers: 1)
        #expect([100, 413].contains(big.answers.first?.status))
    }
}
