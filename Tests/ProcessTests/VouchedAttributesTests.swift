import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// A client is notified by the attributes that its present token or its backend vouches for,
    /// and no others.
    @Suite struct VouchedAttributesTests {
        /// A gateway with one client that has one widget of its account.
        private final class Account {
            static let app = "com.mygame"
            let gateway: any TestGateway
            let backend: String
            private var http: TestHTTP
            private var changes = 0

            init(asProcess: Bool = false) throws {
                gateway = asProcess ? try GatewayProcess() : try LocalGateway()
                backend = try gateway.token(
                    app: Self.app, scope: "catalog:write changes:write clients:write operator")
                http = gateway.http()
                let put = try http.request(
                    "PUT", "/v1/apps/\(Self.app)/catalog", token: backend,
                    headers: [("Content-Type", "application/yaml")],
                    body: """
                        app: \(Self.app)
                        entities: { GameStatus: { properties: [turn] }, Clock: {} }
                        widgets:
                          - kind: turn
                            configuration: static
                            families: [systemSmall]
                            collapse: 0ms
                            dependsOn:
                              - { entity: GameStatus, match: { account: $client.account } }
                          - kind: clock
                            configuration: static
                            families: [systemSmall]
                            dependsOn: [{ entity: Clock }]
                        """)
                try #require(put.status == 201, "\(put.text)")
            }

            func restart() throws {
                try gateway.process.restart()
                http = gateway.http()
            }

            func token(_ attributes: [String] = []) throws -> String {
                try gateway.token(
                    app: Self.app, scope: "client", sub: "phone", attributes: attributes)
            }

            func send(
                _ method: String, _ path: String = "", token: String,
                headers: [(String, String)] = [], _ body: JSONValue? = nil
            ) throws -> TestHTTPAnswer {
                try http.request(
                    method, "/v1/apps/\(Self.app)/clients/phone\(path)", token: token,
                    headers: headers, body: body?.text)
            }

            func register(_ token: String) throws -> String {
                let answer = try send(
                    "PUT", token: token,
                    [
                        "platform": "iOS",
                        "widgets": [
                            ["kind": "turn", "family": "systemSmall"],
                            ["kind": "clock", "family": "systemSmall"],
                        ],
                    ])
                guard let cursor = answer["cursor"]?.stringValue else {
                    throw TestFailure(answer.text)
                }
                return cursor
            }

            func poll(
                _ token: String, since cursor: String
            ) throws -> (stale: [String], cursor: String) {
                let answer = try PollAnswer(
                    send("GET", "/reloads", token: token, headers: [("Last-Event-ID", cursor)]))
                return (
                    try answer.notifications.flatMap { try names(in: claims(of: $0)) },
                    answer.cursor
                )
            }

            func registered() throws -> JSONValue? {
                try send("GET", token: backend)["attributes"]
            }

            func change(account: String) throws {
                try change(["entity": "GameStatus", "attributes": ["account": .string(account)]])
            }

            /// Posts a change that affects every client.
            func changeClock() throws { try change(["entity": "Clock"]) }

            private func change(_ data: JSONValue) throws {
                changes += 1
                let event: JSONValue = [
                    "specversion": "1.0", "type": "turn", "source": "test",
                    "id": .string("\(changes)"), "data": data,
                ]
                let answer = try http.post([event], app: Self.app, token: backend)
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
            try account.restart()
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
}
