import GatewayTestSupport
import Testing
import WidgetModel

/// Bodies that do not match their media type, on every route that reads one.
@Suite("Malformed documents", .othersUnaffected)
struct MalformedDocumentTests {
    /// A route that reads JSON, with a media type that it accepts.
    struct Writing: Sendable, CustomTestStringConvertible {
        let method: String
        let path: String
        let type: String
        var isOwn = false
        var testDescription: String { "\(method) \(path)" }
    }

    static let routes = [
        Writing(method: "PUT", path: "catalog", type: "application/json"),
        Writing(method: "POST", path: "changes", type: "application/cloudevents+json"),
        Writing(method: "POST", path: "changes", type: "application/cloudevents-batch+json"),
        Writing(method: "POST", path: "reloads", type: "application/json"),
        Writing(method: "PUT", path: "clients/malformed", type: "application/json"),
        Writing(method: "PATCH", path: "clients/malformed", type: "application/json"),
        Writing(
            method: "POST", path: "clients/malformed/acks", type: "application/json", isOwn: true),
        Writing(method: "POST", path: "tokens", type: "application/json"),
    ]

    private func send(_ route: Writing, _ text: String) async throws -> TestHTTPAnswer {
        let target = try await Target.shared()
        let token = route.isOwn ? try target.clientToken("malformed") : target.backend
        return try await target.send(
            route.method, route.path, token: token, type: route.type, text: text)
    }

    @Test("A body that ends in the middle is 400 on every writing route", arguments: routes)
    func truncated(_ route: Writing) async throws {
        expectRefusal(
            try await send(route, #"{"s3cr3t": "#), 400, "malformed", says: "not JSON", "byte")
    }

    @Test("Something after the document is 400 on every writing route", arguments: routes)
    func trailingGarbage(_ route: Writing) async throws {
        expectRefusal(try await send(route, "{} s3cr3t"), 400, "malformed", says: "byte 3")
    }

    @Test("A member named twice is 400 on every writing route", arguments: routes)
    func duplicateMembers(_ route: Writing) async throws {
        let answer = try await send(route, #"{"id": "s3cr3t", "id": "other"}"#)
        expectRefusal(answer, 400, "malformed", says: "occurs twice")
    }

    @Test("A member named twice, once with escapes, is 400")
    func escapedDuplicate() async throws {
        let answer = try await send(Self.routes[1], #"{"id": "s3cr3t", "\u0069d": "other"}"#)
        expectRefusal(answer, 400, "malformed", says: "occurs twice")
    }

    @Test("Nesting of 60,000 levels is 400 on every writing route", arguments: routes)
    func deepNesting(_ route: Writing) async throws {
        for open in ["[", #"{"a":"#] {
            let text = String(repeating: open, count: 60_000 / open.utf8.count)
            let answer = try await send(route, text)
            expectRefusal(answer, 400, "malformed", says: "nested deeper")
        }
    }

    @Test("A wrong kind of document is 422 on every writing route", arguments: routes)
    func wrongShape(_ route: Writing) async throws {
        for text in ["17", "null", #""s3cr3t""#, "true"] {
            let answer = try await send(route, text)
            expectRefusal(answer, 422, "invalid", says: "must be")
        }
    }

    @Test("An empty body is 400 on every writing route", arguments: routes)
    func emptyBody(_ route: Writing) async throws {
        expectRefusal(try await send(route, ""), 400, "malformed", says: "byte 0")
    }

    @Test("Bytes that are no UTF-8 in a string are 400 on every writing route", arguments: routes)
    func brokenUTF8(_ route: Writing) async throws {
        let target = try await Target.shared()
        let token = route.isOwn ? try target.clientToken("malformed") : target.backend
        let broken: [[UInt8]] = [
            [0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80],
        ]
        for bytes in broken {
            let body = Array(#"{"a": "s3cr3t"#.utf8) + bytes + Array(#""}"#.utf8)
            let head = """
                \(route.method) /v1/apps/\(Target.app)/\(route.path) HTTP/1.1\r
                Host: localhost\r
                Authorization: Bearer \(token)\r
                Content-Type: \(route.type)\r
                Content-Length: \(body.count)\r
                \r

                """
            let conversation = try await target.converse(Array(head.utf8) + body, answers: 1)
            let answer = try #require(conversation.answers.first)
            expectRefusal(answer, 400, "malformed", says: "UTF-8")
        }
    }

    @Test("A lone surrogate is 400")
    func loneSurrogate() async throws {
        let answer = try await send(Self.routes[1], #"{"id": "\ud800s3cr3t"}"#)
        expectRefusal(answer, 400, "malformed", says: "surrogate")
    }

    @Test("A number out of range is 400")
    func hugeNumber() async throws {
        let answer = try await send(Self.routes[1], #"{"id": 1e999}"#)
        expectRefusal(answer, 400, "malformed", says: "out of range")
    }

    @Test("A missing Content-Type is 415 on every writing route", arguments: routes)
    func missingType(_ route: Writing) async throws {
        let target = try await Target.shared()
        let token = route.isOwn ? try target.clientToken("malformed") : target.backend
        let request = """
            \(route.method) /v1/apps/\(Target.app)/\(route.path) HTTP/1.1\r
            Host: localhost\r
            Authorization: Bearer \(token)\r
            Content-Length: 2\r
            \r
            {}
            """
        let conversation = try await target.converse(Array(request.utf8), answers: 1)
        let answer = try #require(conversation.answers.first)
        expectRefusal(
            answer, 415, "unsupported-media-type", says: "Content-Type is missing", "send ")
    }

    @Test("A wrong Content-Type is 415 on every writing route", arguments: routes)
    func wrongType(_ route: Writing) async throws {
        let target = try await Target.shared()
        let token = route.isOwn ? try target.clientToken("malformed") : target.backend
        for type in ["text/plain", "application/x-www-form-urlencoded", "application", ";"] {
            let answer = try await target.send(
                route.method, route.path, token: token, type: type, text: "{}")
            expectRefusal(answer, 415, "unsupported-media-type", says: "send ")
        }
    }
}
