import GatewayTestSupport
import Testing
import WidgetModel

/// A client that states the registration it expects is rejected if another one is in force.
@Suite(.alone) struct RegistrationDigestTests {
    private static let field = "Timeline-Registration"

    private static func widget(_ character: String) -> JSONValue {
        [
            "kind": "detail", "family": "systemSmall",
            "parameters": ["character": .string(character)],
        ]
    }

    private static func digest(_ answer: TestHTTPAnswer) throws -> String {
        try #require(answer["digest"]?.stringValue, "\(answer.text)")
    }

    @Test func theDigestStandsForWhatIsRegistered() throws {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        let client = try game.client("phone", ["a", "b"])
        let path = "/v1/apps/\(GameFixture.app)/clients/phone"
        let shown = try Self.digest(gateway.http().request("GET", path, token: client.token))
        let again = try gateway.http().register(
            "phone", app: GameFixture.app, token: client.token,
            ["widgets": [Self.widget("b"), Self.widget("a")], "platform": "iOS"])
        #expect(try Self.digest(again) == shown)
        // Neither an acknowledgement nor a restart changes it.
        _ = try gateway.http().request(
            "POST", path + "/acks", token: client.token,
            body: JSONValue.object(["cursor": .string(client.cursor)]).text)
        try gateway.restart()
        #expect(try Self.digest(gateway.http().request("GET", path, token: client.token)) == shown)
        let patched = try gateway.http().request(
            "PATCH", path, token: game.backend,
            body: JSONValue.object(["widgets": [Self.widget("a")]]).text)
        #expect(try Self.digest(patched) != shown)
    }

    @Test(arguments: [TestHTTPVersion.one, .two])
    func whoBelievesAnotherInForceIsToldWhichIs(_ version: TestHTTPVersion) throws {
        let gateway = try LocalGateway()
        let game = try GameFixture(gateway)
        let client = try game.client("phone", ["a"])
        let http = gateway.http(version)
        let path = "/v1/apps/\(GameFixture.app)/clients/phone"
        let digest = try Self.digest(http.request("GET", path, token: client.token))
        let acknowledgement = JSONValue.object(["cursor": .string(client.cursor)]).text

        func stream(_ believed: String) -> TestHTTPStream {
            TestHTTPStream(
                url: gateway.url, ca: gateway.ca, path: path + "/reloads",
                token: client.token, lastEventID: client.cursor, version: version,
                headers: [(Self.field, believed)])
        }
        func answers(_ believed: String) throws -> [TestHTTPAnswer] {
            let fields = [(Self.field, believed)]
            let stream = stream(believed)
            defer { stream.close() }
            return [
                try http.request(
                    "GET", path + "/reloads", token: client.token, headers: fields),
                try http.request(
                    "GET", path + "/reloads?since=\(client.cursor)", token: client.token,
                    headers: fields + [("Prefer", "wait=1")]),
                try http.request(
                    "POST", path + "/acks", token: client.token, headers: fields,
                    body: acknowledgement),
                try #require(stream.head()),
            ]
        }
        #expect(try answers(digest).map(\.status) == [200, 200, 204, 200])
        for answer in try answers("another") {
            #expect(answer.status == 409)
            #expect(answer.header(Self.field.lowercased()) == digest)
        }
        let refused = try http.request(
            "GET", path + "/reloads", token: client.token, headers: [(Self.field, "another")])
        #expect(refused["digest"]?.stringValue == digest)
        #expect(
            refused["type"]?.stringValue
                == ProblemDetails.typePrefix + "registration-mismatch")
        // After a new registration the previous digest is rejected.
        _ = try http.request(
            "PATCH", path, token: client.token,
            body: JSONValue.object(["widgets": [Self.widget("b")]]).text)
        #expect(try answers(digest).map(\.status) == [409, 409, 409, 409])
        // Without the field nothing is checked.
        #expect(try http.request("GET", path + "/reloads", token: client.token).status == 200)
    }
}
