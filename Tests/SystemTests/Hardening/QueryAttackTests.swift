import GatewayTestSupport
import Testing
import WidgetModel

/// Unsupported representations, empty names and queries.
@Suite("Query attacks", .othersUnaffected)
struct QueryAttackTests {
    /// `DELETE /v1/apps/$APP/clients/$CLIENT` with a variable that is not set.
    @Test(
        "A name that is empty removes nothing",
        arguments: [
            "/v1/apps/com.mygame/", "/v1/apps//com.mygame", "/v1/apps/com.mygame//?all=1",
            "/v1/apps/com.mygame/clients/?attribute=account:1",
        ])
    func emptyNames(_ path: String) async throws {
        let target = try await Target.shared()
        expectRefusal(
            try await target.send("DELETE", path, token: target.backend), 404, "not-found")
    }

    @Test("A catalog in a representation there is none of is 406")
    func noSuchRepresentation() async throws {
        let target = try await Target.shared()
        let answer = try await target.send(
            "GET", "catalog", token: target.backend, headers: [("Accept", "image/png")])
        expectRefusal(answer, 406, "not-acceptable", says: "yaml")
    }

    @Test(
        "A poll answers JSON to whatever is accepted but an event stream",
        arguments: [
            "image/png", "text/*", ";;;", "text/event-stream-not", "",
        ])
    func pollAccept(_ accept: String) async throws {
        let target = try await Target.shared()
        try await target.register("accept")
        let answer = try await target.send(
            "GET", "clients/accept/reloads", token: target.clientToken("accept"),
            headers: [("Accept", accept)])
        #expect(answer.status == 200)
        #expect(answer.header("content-type") == "application/json")
    }

    @Test(
        "A listing with a limit that is no number from 1 to 1000 is 422",
        arguments: [
            "0", "1001", "-1", "x", "", "1e3", "99999999999999999999", "0x10", "5%20",
        ])
    func wrongLimit(_ limit: String) async throws {
        let target = try await Target.shared()
        let answer = try await target.send(
            "GET", "clients?limit=\(limit)", token: target.backend)
        expectRefusal(answer, 422, "invalid", place: "limit", says: "1 to 1000")
    }

    @Test("Erasing without saying whom, or only half, is 400 and erases nobody")
    func eraseNobody() async throws {
        let target = try await Target.shared()
        try await target.register("kept")
        for query in [
            "", "?", "?attribut=account:42", "?limit=1", "?attribute=", "?attribute=account",
            "?attribute=:", "?attribute=account:",
        ] {
            let answer = try await target.send("DELETE", "clients\(query)", token: target.backend)
            expectRefusal(answer, 400, "malformed", says: "attribute=NAME:VALUE")
        }
        #expect(try await target.send("GET", "clients/kept", token: target.backend).status == 200)
    }

    @Test(
        "SQL, wildcards and NUL in an attribute query find and erase nobody", .serialized,
        arguments: [
            "account:7'%20OR%20'1'='1", "account:7%25", "account:_", "account:*", "%25:7",
            "account%27;DROP%20TABLE%20registrations;--:7", "account:7%00", "account:7%00x",
            "account%00:7", "ACCOUNT:7", "account:%EF%BC%97",
        ])
    func injection(_ attribute: String) async throws {
        let target = try await Target.shared()
        let registration: JSONValue = ["platform": "iOS", "attributes": ["account": "7"]]
        _ = try await target.send("PUT", "clients/seven", token: target.backend, registration)
        let list = try await target.send(
            "GET", "clients?attribute=\(attribute)", token: target.backend)
        #expect(list.status != 200 || list["clients"] == [], "\(list.text)")
        #expect(list.status < 500)
        let erased = try await target.send(
            "DELETE", "clients?attribute=\(attribute)", token: target.backend)
        #expect(erased.status != 200 || erased["erased"] == 0, "\(erased.text)")
        #expect(erased.status < 500)
        #expect(try await target.send("GET", "clients/seven", token: target.backend).status == 200)
    }

    @Test("Kinds in a poll's query that nobody declared narrow it to nothing")
    func unknownKinds() async throws {
        let target = try await Target.shared()
        try await target.register("kinds")
        let token = try target.clientToken("kinds")
        let path =
            "clients/kinds/reloads?kind=" + (0..<10).map { "k\($0)" }.joined(separator: "&kind=")
        let answer = try await target.send("GET", path, token: token)
        #expect(answer.status == 200)
    }
}
