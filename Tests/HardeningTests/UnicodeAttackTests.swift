import GatewayTestSupport
import Testing
import WidgetModel

/// Texts that look alike: values are compared as bytes, never by their appearance.
@Suite("Look-alike texts", .othersUnaffected)
struct UnicodeAttackTests {
    private static let composed = "s3cr3t-\u{E9}"
    private static let decomposed = "s3cr3t-e\u{301}"

    @Test("A change of one look-alike is not a change of the other")
    func changes() async throws {
        let target = try await Target.shared()
        let token = try target.clientToken("lookalike")
        let registered = try await target.register("lookalike", character: Self.composed)
        let cursor = registered["cursor"]?.stringValue ?? ""
        func stale() async throws -> Int? {
            let poll = try await target.send(
                "GET", "clients/lookalike/reloads?since=\(cursor)", token: token)
            return poll["notifications"]?.arrayValue?.count
        }
        _ = try await target.post(
            Documents.event("look-1", data: Documents.change(Self.decomposed)))
        #expect(try await stale() == 0)
        _ = try await target.post(
            Documents.event("look-2", data: Documents.change(Self.composed)))
        #expect(try await stale() == 1)
    }

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

    @Test("An app whose name looks like another's is not that app")
    func apps() async throws {
        let target = try await Target.shared()
        let token = try target.issuer.token(app: "com.Kid", scope: Issuer.backendScopes)
        let catalog = try await target.send(
            "PUT", "/v1/apps/com.Kid/catalog", token: token, ["app": "com.Kid", "widgets": []])
        #expect(catalog.status == 201)
        // KELVIN SIGN: equal to K for any code that compares characters.
        for (method, path) in [("GET", "catalog"), ("GET", "clients"), ("PUT", "clients/x")] {
            let answer = try await target.send(
                method, "/v1/apps/com.%E2%84%AAid/\(path)", token: token,
                type: "application/json", text: method == "PUT" ? #"{"platform":"iOS"}"# : nil)
            #expect([403, 404, 422].contains(answer.status), "\(answer.text)")
            #expect(answer.header("content-type") == ProblemDetails.mediaType)
        }
    }
}
