import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// A registration that is replaced or removed within the few milliseconds in which a stream is
    /// opened: the stream follows the new one, or is not opened.
    @Suite struct RegistrationRaceTests {
        private static let path = "/v1/apps/\(GameFixture.app)/clients/"

        /// The tries per test; about half of them hit the moment.
        private static let tries = 24

        /// Opens the stream of a new client over a connection of its own; `body` replaces the
        /// registration a few milliseconds after the request.
        private func race(
            _ game: GameFixture, _ number: Int,
            _ body: (TestHTTP, GameFixture.Client) throws -> Void
        ) throws -> (client: GameFixture.Client, stream: TestHTTPStream) {
            let client = try game.client("racer-\(number)", ["panda"])
            // Connect beforehand.
            let http = game.gateway.http()
            _ = try http.request("GET", Self.path + client.name, token: client.token)
            let stream = game.stream(client)
            Thread.sleep(forTimeInterval: Double(number % 6 + 4) / 1000)
            try body(http, client)
            return (client, stream)
        }

        private func blocks(_ stream: TestHTTPStream, upTo sequence: UInt64) throws -> [String] {
            var stale: [String] = []
            while case .block(let block)? = stream.next() {
                if let data = block.data { stale += try names(in: claims(of: data)) }
                if try block.id.map({ try Cursor.sequence($0) >= sequence }) ?? false { break }
            }
            return stale
        }

        @Test func `a stream tells of the widgets that were registered while it was opened`() throws
        {
            let gateway = try GatewayProcess()
            let game = try GameFixture(gateway)
            for number in 0..<Self.tries {
                let (_, stream) = try race(game, number) { http, client in
                    let answer = try http.register(
                        client.name, app: GameFixture.app, token: client.token,
                        [
                            "platform": "iOS",
                            "widgets": [
                                [
                                    "kind": "detail", "family": "systemSmall",
                                    "parameters": ["character": "owl"],
                                ]
                            ],
                        ])
                    #expect(answer.status == 200)
                }
                let head = try #require(stream.head())
                #expect(head.status == 200)
                let sequence = try game.change(
                    gateway.http(), ["panda", "owl"], run: "race-\(number)")
                let stale = try blocks(stream, upTo: sequence)
                #expect(stale == ["detail character=owl"], "try \(number)")
                stream.close()
            }
        }

        @Test func `a client that was removed while its stream was opened has none`() throws {
            let gateway = try GatewayProcess()
            let game = try GameFixture(gateway)
            for number in 0..<Self.tries {
                let (_, stream) = try race(game, number) { http, client in
                    let answer = try http.request(
                        "DELETE", Self.path + client.name, token: game.backend)
                    #expect(answer.status == 204)
                }
                let isOver = stream.waitForEnd(seconds: 2)
                #expect(isOver, "try \(number): the stream goes on")
                if let head = stream.head() { #expect([200, 404].contains(head.status)) }
                stream.close()
            }
        }
    }
}
