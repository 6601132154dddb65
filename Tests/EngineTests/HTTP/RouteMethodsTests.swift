import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import GatewayEngine
@testable import GatewayServer

/// The methods that every path has beside those of its routes, and responses without the
/// representation that the client has already.
@Suite struct RouteMethodsTests {
    private static let table = RouteTable([
        GatewayRoute(.GET, "/page") { _, _ in
            RouteResponse(
                .ok,
                headers: [
                    "Content-Type": "text/plain", "ETag": "\"a,b\"", "Cache-Control": "no-cache",
                    "Vary": "Accept",
                ], body: ByteBuffer(string: "text"))
        },
        GatewayRoute(.PUT, "/page") { _, _ in
            RouteResponse(.ok, headers: ["ETag": "\"a,b\""], body: ByteBuffer(string: "put"))
        },
        GatewayRoute(.POST, "/act") { _, _ in RouteResponse(.noContent) },
        GatewayRoute(.OPTIONS, "/act") { _, _ in RouteResponse(.ok, headers: ["X-Own": "1"]) },
    ])

    private func answer(
        _ method: HTTPMethod, _ target: String, _ fields: HTTPHeaders = [:]
    ) async throws -> RouteResponse {
        let head = HTTPRequestHead(
            version: .http1_1, method: method, uri: target, headers: fields)
        return try await Self.table.respond(
            to: GatewayRequest(head: head, body: .whole(nil)), on: NIOAsyncTestingChannel(),
            logger: Logger(label: "routes") { _ in SwiftLogNoOpLogHandler() })
    }

    @Test func `HEAD is where GET is, and is answered like it`() async throws {
        let get = try await answer(.GET, "/page")
        var head = try await answer(.HEAD, "/page")
        head.omitBody()
        #expect(head.head.status == get.head.status && head.head.headers == get.head.headers)
        #expect(head.contentLength == get.contentLength && head.body == nil)
        #expect(try await answer(.HEAD, "/act").head.status == .methodNotAllowed)
        #expect(try await answer(.HEAD, "/nothing").head.status == .notFound)
    }

    @Test(arguments: [
        ("/page", "GET, HEAD, OPTIONS, PUT"), ("/page?a", "GET, HEAD, OPTIONS, PUT"),
        ("*", "GET, HEAD, OPTIONS, POST, PUT"), ("/", "GET, HEAD, OPTIONS, POST, PUT"),
    ])
    func `OPTIONS is answered with the methods`(target: String, methods: String) async throws {
        let answer = try await answer(.OPTIONS, target)
        #expect(answer.head.status == .noContent && answer.body == nil)
        #expect(answer.head.headers["Allow"] == [methods])
    }

    @Test func `a route's own answer to OPTIONS has the methods too`() async throws {
        let answer = try await answer(.OPTIONS, "/act")
        #expect(answer.head.status == .ok && answer.head.headers["X-Own"] == ["1"])
        #expect(answer.head.headers["Allow"] == ["OPTIONS, POST"])
    }

    @Test func `a method that a path lacks is 405 with the others`() async throws {
        let answer = try await answer(.DELETE, "/page")
        #expect(answer.head.status == .methodNotAllowed)
        #expect(answer.head.headers["Allow"] == ["GET, HEAD, OPTIONS, PUT"])
        #expect(try await self.answer(.OPTIONS, "/nothing").head.status == .notFound)
        #expect(try await self.answer(.GET, "*").head.status == .notFound)
    }

    @Test(arguments: [HTTPMethod.GET, .HEAD])
    func `what the client has is not sent again`(method: HTTPMethod) async throws {
        let answer = try await answer(method, "/page", ["If-None-Match": "W/\"a,b\""])
        #expect(answer.head.status == .notModified)
        #expect(answer.contentLength == nil && answer.body == nil)
        #expect(answer.head.headers["ETag"] == ["\"a,b\""])
        #expect(answer.head.headers["Cache-Control"] == ["no-cache"])
        #expect(answer.head.headers["Vary"] == ["Accept"])
        #expect(!answer.head.headers.contains(name: "Content-Type"))
    }

    @Test func `what the client lacks, and what is not read, is answered whole`() async throws {
        let other = try await answer(.GET, "/page", ["If-None-Match": "\"a\""])
        #expect(other.head.status == .ok && other.contentLength == 4)
        let put = try await answer(.PUT, "/page", ["If-None-Match": "*"])
        #expect(put.head.status == .ok && put.contentLength == 3)
    }
}

/// The comparison of `If-None-Match` with the tag of a representation.
@Suite struct EntityTagTests {
    @Test(arguments: [
        "\"a\"", "W/\"a\"", "*", " * ", "\"b\", \"a\"", "\"b\",W/\"a\"", "W/\"\" , \"a\",",
        "\"x,y\", \"a\"",
    ])
    func `a listed tag matches, weak or not`(field: String) {
        #expect(EntityTag.isListed("\"a\"", in: field))
        #expect(EntityTag.isListed("W/\"a\"", in: field))
    }

    @Test(arguments: [
        "", "a", "\"", "\"a", "\"A\"", "\"a \"", "\"b\"", "\"*\"", "**", "\"b\", \"c",
        "\"b\"a\"c\"",
    ])
    func `anything else does not`(field: String) {
        #expect(!EntityTag.isListed("\"a\"", in: field))
    }

    @Test func `other bytes have another tag`() {
        let tags = Set(["", "a", "b", "ab", "ba"].map { EntityTag.tag(of: $0.utf8) })
        #expect(tags.count == 5)
        #expect(tags.allSatisfy { $0.hasPrefix("\"") && $0.hasSuffix("\"") && $0.count > 2 })
    }
}
