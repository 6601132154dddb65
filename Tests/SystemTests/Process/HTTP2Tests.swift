import GatewayTestSupport
import Testing
import WidgetModel

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
