import NIOCore
import NIOHTTP1
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

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
