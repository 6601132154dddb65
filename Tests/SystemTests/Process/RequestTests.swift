import GatewayTestSupport
import Testing
import WidgetModel

/// The OpenAPI documents of a running gateway; `Deploy/check-api` checks its answers against
/// them.
@Suite(.alone) struct APITests {
    @Test func `each port has its own document`() throws {
        let gateway = try LocalGateway()
        let tls = try operations(gateway.http())
        let own = try operations(gateway.adminHTTP())
        #expect(tls.contains("getReloads") && !tls.contains("getMetrics"))
        #expect(own.contains("getMetrics") && !own.contains("getReloads"))
        #expect(own.isSuperset(of: tls.subtracting(["getReloads", "postTicket", "offerChanges"])))
    }

    /// Returns the ids of the operations in a port's document.
    private func operations(_ port: TestHTTP) throws -> Set<String> {
        let answer = try port.request("GET", "/openapi.json")
        #expect(answer.status == 200 && answer.header("content-type") == "application/json")
        #expect(answer["openapi"] == "3.1.0")
        let ids = answer.text.matches(of: /"operationId": ?"(\w+)"/).map { String($0.1) }
        #expect(Set(ids).count == ids.count)
        return Set(ids)
    }
}

/// Clients that make many requests over one connection of HTTP/2.
@Suite(.alone) struct HTTP2Tests {
    /// libcurl resets a stream if the answer is complete before the stream's end arrives; the
    /// gateway would take many resets for an attack.
    @Test func manyAnswersWithoutABodyShareOneConnection() throws {
        let gateway = try LocalGateway()
        let backend = try gateway.token(
            app: CharacterGame.app, scope: "catalog:write clients:write")
        let client = try gateway.token(app: CharacterGame.app, scope: "client", sub: "device-1")
        try gateway.http().putCatalog(
            CharacterGame.catalogYAML, app: CharacterGame.app, token: backend)
        let registration = ClientRegistration(
            platform: "iOS", widgets: [CharacterGame.widget("bramble")])
        let path = "/v1/apps/\(CharacterGame.app)/clients/device-1"
        let http = gateway.http(.two)
        let registered = try http.request(
            "PUT", path, token: client,
            body: registration.json(maskingTokens: false).text)
        #expect(registered.status == 201 && registered.version == "2", "\(registered.text)")
        let done: JSONObject = ["cursor": registered["cursor"] ?? .null]
        let admin = gateway.adminHTTP()
        let before = try handshakes(admin)
        for _ in 0..<300 {
            let answer = try http.request(
                "POST", path + "/acks", token: client, body: JSONValue.object(done).text)
            try #require(answer.status == 204, "\(answer.text)")
        }
        #expect(try handshakes(admin) == before)
    }

    /// Returns the number of TLS handshakes so far.
    private func handshakes(_ admin: TestHTTP) throws -> Double {
        let samples = MetricsPage(try admin.request("GET", "/metrics").text)
            .labelled("timeline_gateway_tls_handshakes_total")
        try #require(!samples.isEmpty)
        return samples.reduce(0) { $0 + $1.value }
    }
}

/// The scope `operator:read` on every route of both ports, by the documents that they publish.
@Suite(.alone) struct ReadScopeTests {
    /// A route that reads although its method is not GET, because it needs a body.
    private static let explain = "post /v1/apps/{app}/changes/explain"

    /// Requests that no token of an app may send.
    private static func isOfAllApps(_ path: String) -> Bool { !path.hasPrefix("/v1/apps/") }

    @Test func `operator:read reads on every route that operators read, and acts on none`() throws {
        let gateway = try LocalGateway(GatewayConfiguration(), admin: "0.0.0.0:0")
        let game = try GameFixture(gateway)
        _ = try game.client("me", ["a"])
        try game.change(gateway.http(), ["a"], run: "one")
        let tokens = [
            true: try gateway.token(app: "*", scope: "operator:read"),
            false: try gateway.token(app: GameFixture.app, scope: "operator:read", sub: "me"),
        ]
        let ports = [
            gateway.http(),
            TestHTTP(url: "https://localhost:\(gateway.adminPort)", ca: gateway.ca),
        ]
        for (isAdmin, http) in zip([false, true], ports) {
            let document = try http.request("GET", "/openapi.json", token: tokens[true])
            let paths = try #require(document["paths"]?.objectValue?.members)
            var (read, acted) = (0, 0)
            for entry in paths {
                for member in entry.value.objectValue?.members ?? [] {
                    let (path, method, operation) = (entry.name, member.name, member.value)
                    // It never ends.
                    guard path != "/api/live" else { continue }
                    let security = operation.objectValue?["security"]?.arrayValue ?? []
                    guard !security.contains([:]) else { continue }
                    let route = "\(method) \(path)"
                    let target = path.replacing("{app}", with: GameFixture.app)
                        .replacing("{client}", with: "me").replacing("{sequence}", with: "2")
                    let answer = try http.request(
                        method.uppercased(), target, token: tokens[Self.isOfAllApps(path)],
                        headers: [("Content-Type", "application/cloudevents+json")],
                        body: method == "get" ? nil : "{}")
                    let isReading =
                        (method == "get" || route == Self.explain)
                        && !path.hasSuffix("/reloads")
                    #expect(
                        security.contains(["bearer": ["operator:read"]]) == isReading,
                        "\(route) \(isAdmin)")
                    if isReading {
                        read += 1
                        #expect(![401, 403].contains(answer.status), "\(route): \(answer.text)")
                    } else {
                        acted += 1
                        #expect(answer.status == 403, "\(route): \(answer.text)")
                        #expect(answer.text.contains("insufficient-scope"), "\(route)")
                    }
                }
            }
            #expect(read >= (isAdmin ? 12 : 8) && acted >= 12)
        }
        #expect(gateway.terminate() == .status(0))
    }
}
