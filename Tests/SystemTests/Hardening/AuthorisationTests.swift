import GatewaySigning
import GatewayTestSupport
import Testing
import WidgetModel

/// Every route with every scope that does not grant it, and clients that try to access others.
@Suite("Authorisation", .othersUnaffected)
struct AuthorisationTests {
    /// A route and the scopes that grant it (design, section 5).
    struct Route: Sendable, CustomTestStringConvertible {
        let method: String
        /// The path below that of the app; empty for the app itself.
        let path: String
        let scopes: Set<Scope>
        var body: JSONValue?
        var testDescription: String { "\(method) \(path)" }

        func path(app: String) -> String {
            path.isEmpty ? "/v1/apps/\(app)" : "/v1/apps/\(app)/\(path)"
        }
    }

    /// The scopes of whoever may read everything.
    private static let readers: Set<Scope> = [.operate, .operatorRead]

    static let routes: [Route] = [
        Route(method: "PUT", path: "catalog", scopes: [.catalogWrite], body: [:]),
        Route(method: "GET", path: "catalog", scopes: readers.union([.catalogWrite])),
        Route(method: "POST", path: "changes", scopes: [.changesWrite], body: [:]),
        Route(
            method: "POST", path: "changes/explain", scopes: readers.union([.changesWrite]),
            body: [:]),
        Route(method: "GET", path: "changes", scopes: readers),
        Route(method: "GET", path: "changes/7/explain", scopes: readers),
        Route(method: "POST", path: "catalog/diff", scopes: [.catalogWrite], body: [:]),
        Route(method: "GET", path: "clients/me/explain", scopes: readers),
        Route(method: "POST", path: "activities", scopes: [.changesWrite], body: [:]),
        Route(method: "POST", path: "reloads", scopes: [.operate], body: [:]),
        Route(method: "PUT", path: "clients/me", scopes: [.client, .clientsWrite], body: [:]),
        Route(method: "PATCH", path: "clients/me", scopes: [.client, .clientsWrite], body: [:]),
        Route(
            method: "GET", path: "clients/me", scopes: readers.union([.client, .clientsWrite])),
        Route(method: "DELETE", path: "clients/me", scopes: [.client, .clientsWrite]),
        Route(
            method: "GET", path: "clients?attribute=a:b", scopes: readers.union([.clientsWrite])),
        Route(method: "DELETE", path: "clients?attribute=a:b", scopes: [.clientsWrite]),
        Route(method: "GET", path: "clients/me/reloads", scopes: [.client]),
        Route(method: "POST", path: "clients/me/tickets", scopes: [.client]),
        Route(method: "POST", path: "clients/me/acks", scopes: [.client], body: [:]),
        Route(method: "POST", path: "clients/me/pushes", scopes: [.operate], body: [:]),
        Route(method: "GET", path: "attempts", scopes: readers),
        Route(method: "GET", path: "events", scopes: readers),
        Route(method: "DELETE", path: "", scopes: [.operate]),
        Route(method: "POST", path: "tokens", scopes: [.tokensIssue], body: [:]),
    ]

    private func send(_ route: Route, token: String?) async throws -> TestHTTPAnswer {
        let target = try await Target.shared()
        return try await target.send(
            route.method, route.path(app: Target.app), token: token,
            type: route.body == nil ? nil : "application/json", text: route.body?.text)
    }

    @Test("A token without the route's scope is 403 insufficient-scope", arguments: routes)
    func wrongScope(_ route: Route) async throws {
        let target = try await Target.shared()
        let wrong = Set(Scope.allCases).subtracting(route.scopes)
        var tokens = try wrong.map { try target.issuer.token(scope: $0.rawValue, sub: "me") }
        tokens.append(try target.issuer.token(scope: Scope.claim(wrong), sub: "me"))
        tokens.append(try target.issuer.token(scope: "admin root *", sub: "me"))
        tokens.append(try target.issuer.token(scope: "", sub: "me"))
        for token in tokens {
            let answer = try await send(route, token: token)
            expectRefusal(answer, 403, "insufficient-scope", says: "scope")
            let challenge = answer.header("www-authenticate") ?? ""
            #expect(challenge.contains(#"error="insufficient_scope""#))
        }
    }

    @Test("A request without a token is 401 with a challenge on every route", arguments: routes)
    func noToken(_ route: Route) async throws {
        let answer = try await send(route, token: nil)
        expectRefusal(answer, 401, "token-missing", says: "Authorization: Bearer")
        #expect(answer.header("www-authenticate")?.hasPrefix("Bearer ") == true)
    }

    @Test(
        "A token for another app is 403 on every route, the app existing or not", arguments: routes)
    func otherApp(_ route: Route) async throws {
        let target = try await Target.shared()
        for app in ["com.other", "com.bystander", "COM.MYGAME", "com.mygame.", "com"] {
            let token = try target.issuer.token(
                app: app, scope: Scope.claim(Set(Scope.allCases)), sub: "me")
            expectRefusal(try await send(route, token: token), 403, "wrong-app", says: "app")
        }
    }

    @Test(
        "An app without a catalog is 404 to its own token and 403 to another's", arguments: routes)
    func unknownApp(_ route: Route) async throws {
        guard route.method != "PUT" || route.path != "catalog" else { return }
        let target = try await Target.shared()
        let own = try target.issuer.token(
            app: "com.nothing", scope: Scope.claim(Set(Scope.allCases)), sub: "me")
        let path = route.path(app: "com.nothing")
        let bodies: [String: JSONValue] = [
            "changes": Documents.event("a"), "changes/explain": Documents.event("a"),
            "reloads": ["all": true], "clients/me": ["platform": "iOS"], "tokens": ["sub": "me"],
            "activities": ["id": "1", "type": "A", "channel": "me"],
        ]
        let type =
            route.path.hasPrefix("changes") ? "application/cloudevents+json" : "application/json"
        func send(_ token: String) async throws -> TestHTTPAnswer {
            try await target.send(
                route.method, path, token: token, type: route.body == nil ? nil : type,
                text: route.body.map { (bodies[route.path] ?? $0).text })
        }
        if route.path != "clients/me/acks" {
            expectRefusal(try await send(own), 404, "unknown-app", says: "catalog")
        }
        expectRefusal(try await send(target.backend), 403, "wrong-app")
    }

    @Test(
        "Another client's registration, poll and acknowledgement are 403, existing or not",
        arguments: [
            "victim", "nobody",
        ])
    func otherClient(_ victim: String) async throws {
        let target = try await Target.shared()
        try await target.register("victim", character: "s3cr3t-victim")
        let token = try target.clientToken("intruder")
        for (method, suffix) in [
            ("GET", ""), ("PUT", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/reloads"),
            ("POST", "/acks"), ("POST", "/tickets"),
        ] {
            let answer = try await target.send(
                method, "clients/\(victim)\(suffix)", token: token, type: "application/json",
                text: method == "GET" ? nil : #"{"platform":"iOS","cursor":"x"}"#)
            expectRefusal(answer, 403, "wrong-client", says: "another client")
        }
        let stream = target.process.stream(app: Target.app, client: victim, token: token)
        #expect(stream.head()?.status == 403)
    }

    @Test("A client of the same name in another app is 403 on the stream and the poll")
    func otherAppsClient() async throws {
        let target = try await Target.shared()
        let token = try target.issuer.token(app: "com.bystander", scope: "client", sub: "bystander")
        try await target.register("bystander")
        let poll = try await target.send("GET", "clients/bystander/reloads", token: token)
        expectRefusal(poll, 403, "wrong-app")
        let stream = target.process.stream(app: Target.app, client: "bystander", token: token)
        #expect(stream.head()?.status == 403)
    }

    @Test("A client that is not registered is 404 everywhere")
    func unknownClient() async throws {
        let target = try await Target.shared()
        let token = try target.clientToken("ghost")
        for (method, suffix) in [("GET", ""), ("DELETE", ""), ("GET", "/reloads"), ("PATCH", "")] {
            let answer = try await target.send(
                method, "clients/ghost\(suffix)", token: token, type: "application/json",
                text: method == "PATCH" ? "{}" : nil)
            expectRefusal(answer, 404, "unknown-client", says: "Register")
        }
        let stream = target.process.stream(app: Target.app, client: "ghost", token: token)
        #expect(stream.head()?.status == 404)
    }
}
