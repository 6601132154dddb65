import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// Catalogs that are invalid or expensive. Each goes to an app without a catalog; an invalid one
/// leaves it without.
@Suite("Catalog attacks", .othersUnaffected)
struct CatalogAttackTests {
    private static let app = "com.catalog"

    private func put(
        _ text: String, type: String = "application/yaml", headers: [(String, String)] = []
    ) async throws -> TestHTTPAnswer {
        let target = try await Target.shared()
        let token = try target.issuer.token(app: Self.app, scope: Issuer.backendScopes)
        let path = "/v1/apps/\(Self.app)/catalog"
        let answer = try await target.send(
            "PUT", path, token: token, type: type, headers: headers, text: text)
        let after = try await target.send("GET", path, token: token)
        expectRefusal(after, 404, "unknown-app")
        return answer
    }

    private func put(rules: String, intents: String = "") async throws -> TestHTTPAnswer {
        try await put(
            """
            app: com.catalog
            entities: { Hero: { properties: [avatar, healthLevel] } }
            intents:
              Select: { parameters: [{ name: hero, type: Hero }] }
            widgets:
              - kind: hero
                configuration: appIntent
                intent: Select
                families: [systemSmall]
                dependsOn:
                  - \(rules)
            """)
    }

    @Test("A rule that names an unknown entity is 422 with the nearest name")
    func unknownEntity() async throws {
        expectRefusal(
            try await put(rules: "{ entity: Her }"), 422, "invalid",
            place: "widgets[0].dependsOn[0].entity", says: "did you mean `Hero`")
    }

    @Test("A rule that binds an unknown parameter is 422 with the nearest name")
    func unknownParameter() async throws {
        expectRefusal(
            try await put(rules: "{ entity: Hero, match: { id: $heroo } }"), 422, "invalid",
            place: "widgets[0].dependsOn[0].match.id", says: "did you mean `$hero`")
    }

    @Test("A rule with five bindings is 422")
    func fiveBindings() async throws {
        expectRefusal(
            try await put(rules: "{ entity: Hero, match: { a: x, b: x, c: x, d: x, e: x } }"),
            422, "invalid", place: "widgets[0].dependsOn[0].match", says: "at most 4")
    }

    @Test("A rule that names an unknown property is 422 with the nearest name")
    func unknownProperty() async throws {
        expectRefusal(
            try await put(rules: "{ entity: Hero, properties: [avatr] }"), 422, "invalid",
            place: "widgets[0].dependsOn[0].properties[0]", says: "did you mean `avatar`")
    }

    @Test("Every fault of a catalog is listed at once")
    func everyFault() async throws {
        let answer = try await put(
            """
            app: com.other
            selfDeclard: []
            widgets:
              - { kind: a, configuration: sideways, families: 3 }
              - { configuration: static, families: [systemSmall], dependsOn: [{ entity: X }] }
            """)
        for place in ["app", "selfDeclard", "widgets[0].configuration", "widgets[0].families"] {
            expectRefusal(answer, 422, "invalid", place: place)
        }
        expectRefusal(answer, 422, "invalid", place: "widgets[1].kind")
        expectRefusal(answer, 422, "invalid", place: "widgets[1].dependsOn[0].entity")
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

    @Test("An alias to itself is refused")
    func selfAlias() async throws {
        expectRefusal(try await put("a: &a [*a]\n"), 400, "malformed", says: "alias")
    }

    @Test("501 kinds are 422")
    func tooManyKinds() async throws {
        let kinds: [JSONValue] = (0..<501).map {
            ["kind": .string("k\($0)"), "configuration": "static", "families": ["systemSmall"]]
        }
        let catalog: JSONValue = ["app": .string(Self.app), "widgets": .array(kinds)]
        expectRefusal(
            try await put(catalog.text, type: "application/json"), 422, "invalid",
            place: "widgets", says: "at most 500")
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

    @Test("YAML that is no UTF-8, holds NUL or names a member twice is 400")
    func brokenYAML() async throws {
        for text in ["app: a\u{0}b", "app: s3cr3t\napp: b", "app: [", "", "\t\tapp: x: y"] {
            expectRefusal(try await put(text), 400, "malformed")
        }
    }

    @Test("NUL in any name of a catalog is 422", arguments: ["app", "kind", "entity", "match"])
    func nulInNames(_ member: String) async throws {
        let names = ["app": "com.catalog", "kind": "hero", "entity": "Hero", "match": "id"]
        func name(_ which: String) -> String {
            (names[which] ?? "") + (which == member ? #"\0x"# : "")
        }
        let answer = try await put(
            """
            app: "\(name("app"))"
            entities: { "\(name("entity"))": { properties: [] } }
            widgets:
              - kind: "\(name("kind"))"
                configuration: static
                families: [systemSmall]
                dependsOn: [{ entity: "\(name("entity"))", match: { "\(name("match"))": x } }]
            """)
        expectRefusal(answer, 422, "invalid", says: "control characters")
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

    @Test("If-None-Match: * over a catalog that is there is 412 and replaces nothing")
    func alreadyThere() async throws {
        let target = try await Target.shared()
        let answer = try await target.send(
            "PUT", "catalog", token: target.backend, type: "application/yaml",
            headers: [("If-None-Match", "*")], text: "app: com.mygame\nwidgets: []")
        expectRefusal(answer, 412, "precondition-failed")
        let after = try await target.send("GET", "catalog", token: target.backend)
        #expect(after.text == Catalogs.game)
    }

    @Test("A catalog whose app is not the URL's is 422")
    func otherApp() async throws {
        expectRefusal(
            try await put("app: com.mygame\nwidgets: []"), 422, "invalid", place: "app",
            says: "the app of the URL")
    }
}
