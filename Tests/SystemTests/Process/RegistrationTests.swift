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

/// A client is notified by the attributes that its present token or its backend vouches for,
/// and no others.
@Suite(.alone) struct VouchedAttributesTests {
    /// A gateway with one client that has one widget of its account.
    private struct Account {
        static let app = GameFixture.app
        let game: GameFixture
        var gateway: any TestGateway { game.gateway }

        init(asProcess: Bool = false) throws {
            let gateway: any TestGateway = asProcess ? try GatewayProcess() : try LocalGateway()
            game = try GameFixture(gateway)
            let put = try game.put(
                """
                app: \(Self.app)
                entities: { GameStatus: { properties: [turn] }, Clock: {} }
                widgets:
                  - kind: turn
                    configuration: static
                    families: [systemSmall]
                    collapse: 0ms
                    dependsOn: [{ entity: GameStatus, match: { account: $client.account } }]
                  - kind: clock
                    configuration: static
                    families: [systemSmall]
                    dependsOn: [{ entity: Clock }]
                """)
            try #require(put == 200)
        }

        func token(_ attributes: [String] = []) throws -> String {
            try gateway.token(app: Self.app, scope: "client", sub: "phone", attributes: attributes)
        }

        func send(
            _ method: String, _ path: String = "", token: String, _ body: JSONValue? = nil
        ) throws -> TestHTTPAnswer {
            try gateway.http().request(
                method, "/v1/apps/\(Self.app)/clients/phone\(path)", token: token,
                body: body?.text)
        }

        func register(_ token: String) throws -> String {
            let widgets: JSONValue = [
                ["kind": "turn", "family": "systemSmall"],
                ["kind": "clock", "family": "systemSmall"],
            ]
            let answer = try send("PUT", token: token, ["platform": "iOS", "widgets": widgets])
            return try #require(answer["cursor"]?.stringValue, "\(answer.text)")
        }

        func poll(
            _ token: String, since cursor: String
        ) throws -> (stale: [String], cursor: String) {
            let client = GameFixture.Client(name: "phone", token: token, cursor: cursor)
            return try game.poll(client, since: cursor)
        }

        func registered() throws -> JSONValue? {
            try send("GET", token: game.backend)["attributes"]
        }

        func change(account: String) throws {
            try change(["entity": "GameStatus", "attributes": ["account": .string(account)]])
        }

        /// Posts a change that affects every client.
        func changeClock() throws { try change(["entity": "Clock"]) }

        private func change(_ data: JSONValue) throws {
            let event: JSONValue = [
                "specversion": "1.0", "type": "turn", "source": "test",
                "id": data.objectValue?["entity"] ?? "1", "data": data,
            ]
            let answer = try gateway.http().post([event], app: Self.app, token: game.backend)
            try #require(answer.status == 202, "\(answer.text)")
        }
    }

    @Test(arguments: [TestHTTPVersion.one, .two])
    func whateverComesWithATokenPutsInForceWhatItVouchesFor(_ version: TestHTTPVersion) throws {
        let account = try Account(asProcess: true)
        let (with, without) = (try account.token(["account=42"]), try account.token())
        let cursor = try account.register(without)
        // Replaced by a stream.
        let stream = account.gateway.stream(
            app: Account.app, client: "phone", token: with, from: cursor, version: version)
        defer { stream.close() }
        try #require(stream.head()?.status == 200)
        #expect(try account.registered()?.objectValue?["account"] == "42")
        try account.change(account: "42")
        #expect(try Self.told(stream) == ["turn"])
        // Replaced by a poll, which an open stream of the other token follows.
        _ = try account.poll(without, since: cursor)
        #expect(try account.registered() == nil)
        try account.gateway.process.restart()
        #expect(try account.registered() == nil)
        // Replaced by an acknowledgement.
        let poll = try account.poll(without, since: cursor)
        #expect(poll.stale == [])
        let acknowledged = try account.send(
            "POST", "/acks", token: with, ["cursor": .string(poll.cursor)])
        #expect(acknowledged.status == 204, "\(acknowledged.text)")
        #expect(try account.registered()?.objectValue?["account"] == "42")
        #expect(try account.poll(with, since: cursor).stale == ["turn"])
    }

    @Test func anOpenStreamFollowsTheLatestToken() throws {
        let account = try Account()
        let (with, without) = (try account.token(["account=42"]), try account.token())
        let cursor = try account.register(with)
        let stream = account.gateway.stream(
            app: Account.app, client: "phone", token: with, from: cursor)
        defer { stream.close() }
        try #require(stream.head()?.status == 200)
        _ = try account.poll(without, since: cursor)
        try account.change(account: "42")
        try account.changeClock()
        #expect(try Self.told(stream) == ["clock"])
    }

    /// Returns the names in the next event of a stream.
    private static func told(_ stream: TestHTTPStream) throws -> [String] {
        while case .block(let block) = stream.next() {
            if let data = block.data { return try names(in: claims(of: data)) }
        }
        return []
    }
}
