import GatewayTestSupport
import Testing
import WidgetModel

/// The admin port: who may read and act on loopback, and access from other machines.
@Suite(.alone) struct AdminPortTests {
    private let json = [("Content-Type", "application/json")]

    @Test func `on loopback everybody reads, and operators alone act`() throws {
        let gateway = try LocalGateway()
        let admin = gateway.adminHTTP()
        let game = try GameFixture(gateway)
        _ = try game.client("client", ["a"])
        try game.change(gateway.http(), ["a"], run: "one")
        let app = "/v1/apps/\(GameFixture.app)"
        let clients = try admin.request("GET", app + "/clients")
        #expect(clients.status == 200 && clients.text.contains(#""client":"client""#))
        #expect(try admin.request("GET", app + "/catalog").status == 200)
        // Only the TLS port has streams and polls.
        #expect(try admin.request("GET", app + "/clients/client/reloads").status == 404)
        let reload = #"{"all":true}"#
        let bare = try admin.request("POST", app + "/reloads", headers: json, body: reload)
        #expect(bare.status == 401)
        #expect(try admin.request("DELETE", app + "/clients/client").status == 401)
        let backend = try gateway.token(app: GameFixture.app, scope: "changes:write")
        let weak = try admin.request(
            "POST", app + "/reloads", token: backend, headers: json, body: reload)
        #expect(weak.status == 403)
        let other = try gateway.token(app: "com.other", scope: "operator")
        let foreign = try admin.request(
            "POST", app + "/reloads", token: other, headers: json, body: reload)
        #expect(foreign.status == 403)
        let acted = try admin.request(
            "POST", app + "/reloads", token: game.backend, headers: json, body: reload)
        #expect(acted.status == 202 && acted["sequence"]?.integerValue != nil)
        for path in ["/api/overview", "/api/apps", "/api/system"] {
            let answer = try admin.request("GET", path)
            #expect(answer.status == 200 && answer.json != nil, "\(path)")
        }
    }

    @Test func `a browser is used by no other site, and loads nothing of another host`() throws {
        let gateway = try LocalGateway()
        let admin = gateway.adminHTTP()
        for field in [
            ("Host", "attacker.example"), ("Origin", "https://attacker.example"),
            ("Sec-Fetch-Site", "cross-site"),
        ] {
            for path in ["/api/overview", "/metrics", "/v1/apps/a/clients", "/api/live"] {
                #expect(
                    try admin.request("GET", path, headers: [field]).status == 403,
                    "\(path) \(field)")
            }
        }
        let page = try admin.request("GET", "/")
        #expect(page.status == 200 && page.header("content-type") == "text/html; charset=utf-8")
        let policy = try #require(page.header("content-security-policy"))
        #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'; "))
        #expect(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"))
        #expect(page.header("x-content-type-options") == "nosniff")
        for line in page.text.split(separator: "\n") where line.contains("src=\"") {
            let path = try #require(
                line.split(separator: "src=\"").last?.split(separator: "\"").first)
            let file = try admin.request("GET", String(path))
            #expect(file.status == 200, "\(path)")
            let tag = try #require(file.header("etag"))
            let again = try admin.request("GET", String(path), headers: [("If-None-Match", tag)])
            #expect(again.status == 304 && again.body.isEmpty)
        }
        let put = try admin.request(
            "PUT", "/livez", token: gateway.token(app: "*", scope: "operator"))
        #expect(put.status == 405 && put.header("allow") == "GET, HEAD, OPTIONS")
        let nothing = try admin.request("GET", "/nothing")
        #expect(nothing.status == 404)
        #expect(nothing.header("content-type") == "application/problem+json")
    }

    @Test
    func
        `the dashboard hears event after event, and keeps the gateway from stopping no longer`()
        throws
    {
        let gateway = try LocalGateway()
        let listener = try TestProgram(
            "/usr/bin/curl", ["-sN", "http://\(gateway.admin)/api/live"])
        func events() -> [Substring] {
            listener.output.split(separator: "\n").filter { $0.hasPrefix("data: ") }
        }
        try blockUntil("three events") { events().count >= 3 }
        // The third may not be whole.
        for event in events().prefix(2) {
            let value = try JSONValue(parsing: Array(event.dropFirst(6).utf8))
            #expect(value.objectValue?["troubles"]?.arrayValue != nil)
        }
        #expect(gateway.terminate() == .status(0))
        #expect(listener.waitForExit() != nil)
    }

    @Test
    func `where other machines reach it there is TLS, and nothing is told without a token`()
        throws
    {
        let configuration = try GatewayConfiguration()
        let (exit, said) = try GatewayProcess.run([
            "check-config", "--config", configuration.file, "--data", configuration.folder,
            "--admin", "0.0.0.0:9464",
        ])
        #expect(exit == .status(0) && said.contains("0.0.0.0:9464 with TLS"), "\(said)")
        let gateway = try LocalGateway(configuration, admin: "0.0.0.0:0")
        let port = gateway.adminPort
        let admin = TestHTTP(url: "https://localhost:\(port)", ca: gateway.ca)
        #expect(try admin.request("GET", "/livez").status == 200)
        #expect(try admin.request("GET", "/readyz").status == 200)
        #expect(try admin.request("GET", "/").text.contains("Timeline Gateway"))
        let paths = [
            "/metrics", "/version", "/api/overview", "/api/live", "/api/apps", "/api/system",
            "/openapi.json",
            "/v1/apps/a/clients", "/v1/apps/a/catalog", "/.well-known/jwks.json", "/nothing",
        ]
        let weak = try gateway.token(app: "*", scope: "operator changes:write")
        let one = try gateway.token(app: "a", scope: "operator")
        let client = try gateway.token(app: "a", scope: "changes:write clients:write")
        for path in paths {
            #expect(try admin.request("GET", path).status == 401, "\(path)")
            #expect(try admin.request("GET", path, token: client).status == 403, "\(path)")
        }
        #expect(try admin.request("GET", "/metrics", token: one).status == 403)
        #expect(try admin.request("GET", "/api/overview", token: weak).status == 200)
        #expect(try admin.request("GET", "/metrics", token: weak).status == 200)
        #expect(try admin.request("GET", "/nothing", token: weak).status == 404)
        // A browser offers HTTP/2 first.
        for (option, answer) in [("--http2", "2 200"), ("--http1.1", "1.1 200")] {
            let (browsed, page) = try GatewayProcess.run(
                [
                    "-sS", option, "--cacert", gateway.ca, "-o", "/dev/null",
                    "-w", "%{http_version} %{http_code}", "https://localhost:\(port)/",
                ], program: "/usr/bin/curl")
            #expect(browsed == .status(0) && page == answer, "\(page)")
        }
        // Nothing is answered in plain text.
        let (plain, answer) = try GatewayProcess.run(
            ["-s", "--max-time", "5", "http://127.0.0.1:\(port)/livez"],
            program: "/usr/bin/curl")
        #expect(plain != .status(0) && !answer.contains("live"))
        #expect(gateway.terminate() == .status(0))
    }
}
