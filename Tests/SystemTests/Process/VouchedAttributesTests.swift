import GatewayTestSupport
import Testing
import WidgetModel

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
