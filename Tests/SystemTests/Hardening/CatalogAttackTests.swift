import CatalogModel
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
