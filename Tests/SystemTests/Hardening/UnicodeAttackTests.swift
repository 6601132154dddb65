import GatewayTestSupport
import Testing
import WidgetModel

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
