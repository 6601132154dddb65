import GatewayCore
import NIOHTTP1
import Testing
import WidgetModel

@testable import GatewayServer

/// The handshake of senders of events.
@Suite struct WebhookHandshakeTests {
    private let limit = TokenRate(count: 10, period: 1_000, burst: 10)

    private func answer(_ fields: HTTPHeaders) throws -> [String: String] {
        let headers = try WebhookHandshake(fields)?.answer(within: limit) ?? [:]
        return Dictionary(uniqueKeysWithValues: headers.map { ($0.name, $0.value) })
    }

    @Test(arguments: [("120", "120"), ("600", "600"), ("601", "600"), (nil, "600")])
    func `the sender may send what it asks for, up to the app's rate`(
        wanted: String?, allowed: String
    ) throws {
        var fields: HTTPHeaders = ["webhook-request-origin": "events.example:443"]
        if let wanted { fields.add(name: "WebHook-Request-Rate", value: wanted) }
        #expect(
            try answer(fields) == [
                "WebHook-Allowed-Origin": "events.example:443", "WebHook-Allowed-Rate": allowed,
            ])
    }

    @Test func `any rate is at least one request per minute`() throws {
        let slow = TokenRate(count: 1, period: 86_400_000, burst: 1)
        let handshake = try #require(
            try WebhookHandshake(["WebHook-Request-Origin": "events.example"]))
        #expect(handshake.answer(within: slow)["WebHook-Allowed-Rate"] == ["1"])
    }

    @Test func `other requests are no handshake`() throws {
        #expect(try answer([:]) == [:])
        #expect(try answer(["WebHook-Request-Rate": "nonsense"]) == [:])
    }

    @Test(arguments: [
        ["WebHook-Request-Origin": ""], ["WebHook-Request-Origin": "a b"],
        ["WebHook-Request-Origin": "<a>"], ["WebHook-Request-Origin": "ä.example"],
        ["WebHook-Request-Origin": String(repeating: "a", count: 261)],
        ["WebHook-Request-Origin": "a", "WebHook-Request-Rate": "0"],
        ["WebHook-Request-Origin": "a", "WebHook-Request-Rate": "1.5"],
        ["WebHook-Request-Origin": "a", "WebHook-Request-Rate": "99999999999999999999"],
    ])
    func `a malformed question is 400`(fields: [String: String]) {
        let headers = HTTPHeaders(fields.map { ($0.key, $0.value) })
        let problem = #expect(throws: ProblemDetails.self) { try WebhookHandshake(headers) }
        #expect(problem?.status == 400)
    }
}
