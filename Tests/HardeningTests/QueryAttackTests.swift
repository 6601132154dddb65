import GatewayTestSupport
import Testing
import WidgetModel

/// Unsupported methods, representations and queries.
@Suite("Method and query attacks", .othersUnaffected)
struct QueryAttackTests {
    @Test(
        "A method that a path does not take is 405 with Allow",
        arguments: [
            ("DELETE", "catalog", "GET, PUT"), ("PUT", "changes", "GET, POST"),
            ("PUT", "reloads", "POST"),
            ("POST", "clients/x", "DELETE, GET, PATCH, PUT"), ("PUT", "clients/x/reloads", "GET"),
            ("GET", "clients/x/acks", "POST"), ("PATCH", "clients", "DELETE, GET"),
            ("GET", "tokens", "POST"), ("POST", "/.well-known/jwks.json", "GET"),
            ("TRACE", "catalog", "GET, HEAD, OPTIONS, PUT"),
        ])
    func wrongMethod(_ method: String, _ path: String, _ allowed: String) async throws {
        let target = try await Target.shared()
        let answer = try await target.send(method, path, token: target.backend)
        expectRefusal(answer, 405, "method-not-allowed")
        let allow = Set((answer.header("allow") ?? "").split(separator: ", ").map(String.init))
        #expect(allow.isSuperset(of: allowed.split(separator: ", ").map(String.init)))
    }

    @Test("OPTIONS says the methods of a path and grants nothing")
    func options() async throws {
        let target = try await Target.shared()
        let answer = try await target.send("OPTIONS", "catalog", token: target.backend)
        #expect(answer.status == 204 && answer.body.isEmpty)
        #expect(answer.header("allow") == "GET, HEAD, OPTIONS, PUT")
        #expect(answer.header("access-control-allow-origin") == nil)
    }

    @Test(
        "A path that leads nowhere is 404",
        arguments: [
            "/", "/v1", "/v1/apps/", "/v1/apps/com.mygame/clients/a/b/c", "/metrics",
            "/v1//catalog", "/v2/apps/com.mygame/catalog", "/.well-known/",
            "/..%2f..%2fetc/passwd",
        ])
    func nowhere(_ path: String) async throws {
        let target = try await Target.shared()
        expectRefusal(
            try await target.send("GET", path, token: target.backend), 404, "not-found")
    }

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

    @Test(
        "A query that is no percent-encoded UTF-8 is 400",
        arguments: [
            "attribute=%FF:1", "attribute=account:%zz", "after=%C3%28", "attribute=account:%",
        ])
    func brokenQuery(_ query: String) async throws {
        let target = try await Target.shared()
        for method in ["GET", "DELETE"] where method == "GET" || query.hasPrefix("attribute") {
            let answer = try await target.send(method, "clients?\(query)", token: target.backend)
            expectRefusal(answer, 400, "malformed")
        }
    }

    @Test(
        "An attribute query without name or value is 400",
        arguments: ["", "account", ":", "account:"])
    func halfAttribute(_ text: String) async throws {
        let target = try await Target.shared()
        for method in ["GET", "DELETE"] {
            let answer = try await target.send(
                method, "clients?attribute=\(text)", token: target.backend)
            #expect([400, 422].contains(answer.status))
            #expect(answer.header("content-type") == ProblemDetails.mediaType)
        }
    }

    @Test("Erasing without saying whom is 400 and erases nobody")
    func eraseNobody() async throws {
        let target = try await Target.shared()
        try await target.register("kept")
        for query in ["", "?", "?attribut=account:42", "?limit=1"] {
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

    @Test(
        "NUL in a query is refused, not cut off",
        arguments: [
            "attribute=account:7%00", "attribute=account%00:7", "after=a%00b",
        ])
    func nul(_ query: String) async throws {
        let target = try await Target.shared()
        let answer = try await target.send("GET", "clients?\(query)", token: target.backend)
        #expect([400, 422].contains(answer.status))
        #expect(answer.header("content-type") == ProblemDetails.mediaType)
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
