import GatewayTestSupport
import Testing
import WidgetModel

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
