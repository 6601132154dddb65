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
        var bytesMax = 60_000
        var testDescription: String { "\(method) \(path)" }
    }

    static let routes = [
        Writing(method: "PUT", path: "catalog", type: "application/json"),
        Writing(method: "POST", path: "changes", type: "application/cloudevents+json"),
        Writing(method: "POST", path: "changes", type: "application/cloudevents-batch+json"),
        Writing(method: "POST", path: "reloads", type: "application/json"),
        Writing(method: "POST", path: "activities", type: "application/json", bytesMax: 3_000),
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

    @Test("A body that is no JSON is 400 on every writing route", arguments: routes)
    func notJSON(_ route: Writing) async throws {
        for text in [
            "", #"{"s3cr3t": "#, "{} s3cr3t", #"{"id": "s3cr3t", "id": "other"}"#,
            #"{"id": "\ud800s3cr3t"}"#,
        ] {
            expectRefusal(try await send(route, text), 400, "malformed", says: "not JSON", "byte")
        }
    }

    @Test("Nesting of thousands of levels is 400 on every writing route", arguments: routes)
    func deepNesting(_ route: Writing) async throws {
        for open in ["[", #"{"a":"#] {
            let text = String(repeating: open, count: route.bytesMax / open.utf8.count)
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
