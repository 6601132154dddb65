import CatalogModel
import Foundation
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

/// Texts that look alike: values are compared as bytes, never by their appearance.
@Suite("Look-alike texts", .othersUnaffected)
struct UnicodeAttackTests {
    private static let composed = "s3cr3t-\u{E9}"
    private static let decomposed = "s3cr3t-e\u{301}"

    @Test("Events whose ids look alike are two events")
    func eventIDs() async throws {
        let target = try await Target.shared()
        let answer = try await target.post(batch: [
            Documents.event("id-\u{E9}", data: Documents.change("one")),
            Documents.event("id-e\u{301}", data: Documents.change("two")),
        ])
        #expect(answer["accepted"] == 2, "\(answer.text)")
    }

    @Test("The same event id with data that looks alike is 422, not a duplicate")
    func reusedID() async throws {
        let target = try await Target.shared()
        let first = try await target.post(
            Documents.event("alike", data: Documents.change("alike-" + Self.composed)))
        #expect(first["accepted"] == 1)
        let second = try await target.post(
            Documents.event("alike", data: Documents.change("alike-" + Self.decomposed)))
        expectRefusal(second, 422, "event-id-reused", place: "id")
    }

    @Test("A client whose name looks like another's is not that client")
    func clients() async throws {
        let target = try await Target.shared()
        try await target.register("Kelvin")
        for (subject, status) in [("Kelvin", 200), ("\u{212A}elvin", 403)] {
            let token = try target.issuer.token(app: Target.app, scope: "client", sub: subject)
            for path in ["clients/Kelvin", "clients/Kelvin/reloads"] {
                let answer = try await target.send("GET", path, token: token)
                #expect(answer.status == status, "\(answer.text)")
            }
        }
    }
}

/// Invalid changes: none may be accepted, not even in part.
@Suite("Change attacks", .othersUnaffected)
struct ChangeAttackTests {
    @Test("1,001 events are 413 and none of them is taken")
    func tooManyEvents() async throws {
        let target = try await Target.shared()
        let answer = try await target.post(
            batch: (0..<1001).map { Documents.event("many-\($0)") })
        expectRefusal(answer, 413, "too-large", says: "at most 1000")
        let again = try await target.post(Documents.event("many-0"))
        #expect(again["accepted"] == 1, "it was not taken before")
    }

    @Test("One event over 64 KiB is 413, alone and within a batch")
    func bigEvent() async throws {
        let target = try await Target.shared()
        let padding = String(repeating: "s3cr3t", count: 11_000)
        let big = Documents.event(
            "big", data: ["entity": "CharacterDetail", "padding": .string(padding)])
        expectRefusal(try await target.post(big), 413, "too-large", says: "65536")
        let batch = try await target.post(batch: [Documents.event("beside-big"), big])
        expectRefusal(batch, 413, "too-large", says: "65536")
        let again = try await target.post(Documents.event("beside-big"))
        #expect(again["accepted"] == 1, "the batch was not taken in part")
    }

    @Test("More than 64 keys by one rule are 422")
    func tooManyKeys() async throws {
        let target = try await Target.shared()
        func values(_ count: Int) -> JSONValue {
            .array((0..<count).map { .string("s3cr3t-\($0)") })
        }
        func event(_ id: String, _ first: Int, _ second: Int) -> JSONValue {
            Documents.event(
                id,
                data: [
                    "entity": "Pair",
                    "attributes": ["first": values(first), "second": values(second)],
                ])
        }
        let most = try await target.post(event("pairs", 8, 8))
        #expect(most.status == 202, "\(most.text)")
        let answer = try await target.post(event("pairs-over", 8, 9))
        expectRefusal(answer, 422, "invalid", says: "com.mygame.pairs", "72", "at most 64")
        let long = try await target.post(event("pairs-long", 65, 1))
        expectRefusal(
            long, 422, "invalid", place: "data.attributes.first", says: "at most 64")
    }

    @Test(
        "A reload of nothing, of both, or of an unknown kind is 422",
        arguments: [
            [:], ["all": true, "kind": "com.mygame.game-status"], ["all": false], ["kind": 5],
            ["kind": "com.mygame.s3cr3t"], ["kind": "com.mygame.game-status\u{0}"], [],
        ] as [JSONValue])
    func wrongReload(_ body: JSONValue) async throws {
        let target = try await Target.shared()
        let answer = try await target.send("POST", "reloads", token: target.backend, body)
        expectRefusal(answer, 422, "invalid")
    }
}

/// Catalogs that are invalid or expensive. Each goes to an app without a catalog; an invalid one
/// leaves it without.
@Suite("Catalog attacks", .othersUnaffected)
struct CatalogAttackTests {
    private static let app = "com.catalog"

    private func put(
        _ text: String, headers: [(String, String)] = []
    ) async throws -> TestHTTPAnswer {
        let target = try await Target.shared()
        let token = try target.issuer.token(app: Self.app, scope: Issuer.backendScopes)
        let path = "/v1/apps/\(Self.app)/catalog"
        let answer = try await target.send(
            "PUT", path, token: token, type: "application/yaml", headers: headers, text: text)
        let after = try await target.send("GET", path, token: token)
        expectRefusal(after, 404, "unknown-app")
        return answer
    }

    @Test("A YAML alias bomb is refused without being expanded", arguments: ["[%]", "{%}"])
    func aliasBomb(_ brackets: String) async throws {
        var text = "a0: &a0 lol\n"
        for level in 1...12 {
            let isMap = brackets.hasPrefix("{")
            let aliases = (0..<9).map { (isMap ? "k\($0): " : "") + "*a\(level - 1)" }
            let inner = aliases.joined(separator: " , ")
            text +=
                "a\(level): &a\(level) "
                + brackets.replacingOccurrences(of: "%", with: " \(inner) ") + "\n"
        }
        expectRefusal(try await put(text), 400, "malformed", says: "expands to too many values")
    }

    @Test("One byte over 1 MiB is 413")
    func tooLarge() async throws {
        let text = "app: com.catalog\nwidgets: []\n"
        let padding = String(repeating: "#", count: 1024 * 1024 + 1 - text.utf8.count)
        expectRefusal(try await put(text + padding), 413, "too-large", says: "1048576")
    }

    @Test("A mapping of ninety thousand members is refused before the bystander notices")
    func hugeMapping() async throws {
        let members = (0..<90_000).map { " a\($0): 1\n" }.joined()
        let answer = try await put("app: com.catalog\nwidgets: []\nentities:\n" + members)
        #expect([400, 422].contains(answer.status))
        expectRefusal(answer, answer.status, answer.status == 400 ? "malformed" : "invalid")
    }

    @Test("YAML nested without end is 400, and its text is not sent back")
    func deepYAML() async throws {
        for open in ["[", "{a: ", "- "] {
            let answer = try await put("app: \n" + String(repeating: open, count: 100_000))
            expectRefusal(answer, 400, "malformed")
            #expect(answer.body.count < 4096, "a refusal is short")
        }
    }

    @Test(
        "A source of content that no gateway may ask is 422",
        arguments: [
            "http://a.test", "https://127.0.0.1/", "https://10.1.2.3/", "https://169.254.169.254/",
            "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://2130706433/",
            "https://0x7f000001/", "https://s3cr3t@a.test/", "https://a.test\\\\@b.test/",
            "https://a.test:0/", "https://a.test/#s3cr3t",
        ])
    func contentSource(_ url: String) async throws {
        let answer = try await put(
            """
            app: com.catalog
            widgets: []
            activities: [{ type: A, content: { url: "\(url)" } }]
            """)
        expectRefusal(answer, 422, "invalid", place: "activities[0].content.url")
    }

    @Test(
        "If-Match that is wrong is 412, whatever it looks like",
        arguments: ["\"x\"", "*", "W/\"\"", "garbage"])
    func wrongMatch(_ tag: String) async throws {
        let answer = try await put(
            "app: com.catalog\nwidgets: []", headers: [("If-Match", tag)])
        expectRefusal(answer, 412, "precondition-failed", says: "ETag")
    }

    @Test("If-None-Match with anything but * is 400")
    func wrongNoneMatch() async throws {
        let answer = try await put(
            "app: com.catalog\nwidgets: []", headers: [("If-None-Match", "\"x\"")])
        expectRefusal(answer, 400, "malformed", says: "If-None-Match")
    }
}
