import Foundation
import GatewayTestSupport
import Synchronization
import Testing
import WidgetModel

/// Pushes of a real gateway to a webhook, received with another language's TLS and HTTP.
@Suite(.alone) struct WebhookPushTests {
    @Test func `a webhook is told what is stale, signed, and again until it takes it`() throws {
        let clock = HeldClock()
        let fixture = try WebhookFixture(clock: clock)
        let (gateway, game, receiver) = (fixture.gateway, fixture.game, fixture.receiver)
        let answer = try fixture.register(at: "/fails-once")
        let key = try #require(answer["webhookKeys"]?.arrayValue?.first?.stringValue)
        #expect(key.hasPrefix("whpk_"))
        try game.change(gateway.http(), ["hero"], run: "one")
        let first = try #require(try receiver.request(1))
        _ = try fixture.untilRetried()
        clock.advance(to: clock.now + 10_000)
        let second = try #require(try receiver.request(2))
        for request in [first, second] {
            let fields = try #require(request["fields"]?.objectValue)
            #expect(fields["content-type"] == "application/json")
            #expect(fields["webhook-signature"]?.stringValue?.hasPrefix("v1a,") ?? false)
        }
        // The same content is sent again as the same message.
        #expect(first["fields"]?.objectValue?["webhook-id"] != nil)
        #expect(
            first["fields"]?.objectValue?["webhook-id"]
                == second["fields"]?.objectValue?["webhook-id"])
        let body = try JSONValue(parsing: Array((second["body"]?.stringValue ?? "").utf8))
        let notifications = body.objectValue?["notifications"]?.arrayValue ?? []
        let said = try claims(of: try #require(notifications.first?.stringValue))
        #expect(said.reload.map(\.kind) == ["detail"])
        _ = try Cursor.sequence(body.objectValue?["cursor"]?.stringValue)
        gateway.terminate()
        for (text, outcome) in [("begin to fail", "retry"), ("succeed again", "sent")] {
            let lines = gateway.standardErrorTail.split(separator: "\n").filter {
                $0.contains("pushes to a client \(text)")
            }
            #expect(lines.count == 1, "\(gateway.standardErrorTail)")
            #expect(lines.first?.contains("outcome=\(outcome)") == true)
            #expect(lines.first?.contains("client=renderer") == true)
        }
    }

    @Test func `a push that was acknowledged before it was accepted is counted`() throws {
        let fixture = try WebhookFixture()
        let (gateway, game, receiver) = (fixture.gateway, fixture.game, fixture.receiver)
        try receiver.hold()
        let answer = try fixture.register(at: "/held")
        let client = GameFixture.Client(
            name: "renderer",
            token: try gateway.token(app: GameFixture.app, scope: "client", sub: "renderer"),
            cursor: try #require(answer["cursor"]?.stringValue))
        try game.change(gateway.http(), ["hero"], run: "one")
        _ = try #require(try receiver.request(1))
        let polled = try game.poll(client, since: client.cursor)
        #expect(polled.stale == ["detail character=hero"])
        try FreshnessTests.acknowledge(gateway, client, polled.cursor, ["hero"])
        try receiver.release()
        let needless =
            "timeline_gateway_needless_reloads_total{kind=\"detail\",reason=\"acknowledged\"}"
        try blockUntil("counted") { try gateway.metrics()[needless] == 1 }
        func asked(_ path: String) throws -> TestHTTPAnswer {
            try gateway.http().request(
                "GET", "/v1/apps/\(GameFixture.app)/\(path)", token: game.backend)
        }
        let explained = try asked("clients/renderer/explain")["addresses"]?.arrayValue
        #expect(explained?.first?.objectValue?["cause"] == "no-stream")
        try blockUntil("the attempt is listed with its cause") {
            let attempts = try asked("attempts?client=renderer")["attempts"]?.arrayValue
            return attempts?.first?.objectValue?["cause"] == "no-stream"
        }
        gateway.terminate()
    }

    @Test func `an operator is shown when a webhook that fails is asked again`() throws {
        let fixture = try WebhookFixture()
        let (gateway, game, receiver) = (fixture.gateway, fixture.game, fixture.receiver)
        _ = try fixture.register(at: "/later")
        try game.change(gateway.http(), ["hero"], run: "one")
        _ = try #require(try receiver.request(1))
        let address = try fixture.untilRetried()
        #expect(address["failures"] == 1)
        // RFC 3339 in UTC, which sorts by time.
        let now = Date().formatted(.iso8601)
        #expect(try #require(address["retryAt"]?.stringValue) > now)
        gateway.terminate()
    }

    @Test func `what is delivered verifies, with either key while they are changed`() throws {
        let fixture = try WebhookFixture()
        let (gateway, game, receiver) = (fixture.gateway, fixture.game, fixture.receiver)
        func keys(_ answer: TestHTTPAnswer) -> [String] {
            (answer["webhookKeys"]?.arrayValue ?? []).compactMap(\.stringValue)
        }
        func received(_ line: Int) throws -> (fields: [String: String], body: String) {
            let request = try #require(try receiver.request(line))
            let members = request["fields"]?.objectValue?.members ?? []
            let fields = members.map { ($0.name, $0.value.stringValue ?? "") }
            return (
                Dictionary(fields, uniquingKeysWith: { first, _ in first }),
                try #require(request["body"]?.stringValue)
            )
        }
        let old = keys(try fixture.register(at: "/hook"))
        #expect(old.count == 1)
        try game.change(gateway.http(), ["hero"], run: "one")
        let first = try received(1)
        #expect(try WebhookCheck.good(first.fields, body: first.body, key: old[0]) == [0])
        #expect(try WebhookCheck.good(first.fields, body: first.body + " ", key: old[0]) == [])
        var later = first.fields
        later["webhook-timestamp"] = later["webhook-timestamp"].flatMap(Int.init).map {
            "\($0 + 1)"
        }
        #expect(try WebhookCheck.good(later, body: first.body, key: old[0]) == [])

        let (exit, output) = try GatewayProcess.run(
            ["keys", "rotate", "--data", fixture.data, "--purpose", "webhooks"])
        #expect(exit == .status(0) && output.contains(old[0]), "\(output)")
        // The running gateway adopts the key, and gives it to every client that registers.
        var both = old
        try blockUntil("adopted") {
            both = keys(
                try gateway.http().request(
                    "PATCH", "/v1/apps/\(GameFixture.app)/clients/renderer",
                    token: game.backend,
                    headers: [("Content-Type", "application/merge-patch+json")], body: "{}"))
            return both.count > 1
        }
        #expect(both.count == 2 && both.first == old.first)
        try game.change(gateway.http(), ["hero"], run: "two")
        let second = try received(2)
        #expect(second.fields["webhook-signature"]?.split(separator: " ").count == 2)
        for (place, key) in both.enumerated() {
            #expect(try WebhookCheck.good(second.fields, body: second.body, key: key) == [place])
        }
        let again = try GatewayProcess.run(
            ["keys", "rotate", "--data", fixture.data, "--purpose", "webhooks"])
        #expect(again.exit == .status(1) && again.output.contains("rotation is in progress"))
        gateway.terminate()
    }

    @Test func `a slow host delays nobody else, and to wait for it is no failure`() throws {
        let fixture = try WebhookFixture()
        let (gateway, game, slow) = (fixture.gateway, fixture.game, fixture.receiver)
        try slow.hold()
        for number in 0..<300 {
            _ = try slow.register("slow-\(number)", at: "/held", on: gateway, token: game.backend)
        }
        try game.change(gateway.http(), ["hero"], run: "one")
        _ = try #require(try slow.request(4))
        let fast = try fixture.otherReceiver()
        _ = try fast.register("fast", at: "/hook", on: gateway, token: game.backend)
        try game.change(gateway.http(), ["hero"], run: "two")
        _ = try #require(try fast.request(1))
        #expect(slow.requestCount == 4)
        try slow.release()
        // Those that were told of the first change alone are told of the second, too.
        func outcomes() throws -> [String: Double] {
            let pushes = try gateway.metrics().labelled("timeline_gateway_pushes_total")
            return pushes.reduce(into: [:]) {
                $0[$1.labels["outcome"] ?? "", default: 0] += $1.value
            }
        }
        try blockUntil("all are told", details: { slow.requestCount.description }) {
            try outcomes()["sent"] ?? 0 >= 305
        }
        #expect(try outcomes().keys.sorted() == ["sent"])
        gateway.terminate()
        #expect(!gateway.standardErrorTail.contains("begin to fail"))
    }

    @Test func `a webhook that hangs does not hold up a stop, and is told after it`() throws {
        let clock = HeldClock()
        let fixture = try WebhookFixture(clock: clock)
        let (gateway, receiver) = (fixture.gateway, fixture.receiver)
        try receiver.hold()
        _ = try fixture.register(at: "/held")
        try fixture.game.change(gateway.http(), ["hero"], run: "one")
        let first = try #require(try receiver.request(1))
        let exit = Mutex<GatewayProcessExit?>(nil)
        onThread {
            let ended = gateway.terminate()
            exit.withLock { $0 = ended }
        }
        try blockUntil("stopped") {
            clock.advance(to: clock.now + 1_000)
            return exit.withLock { $0 } != nil
        }
        #expect(exit.withLock { $0 } == .status(0))
        #expect(!gateway.standardErrorTail.contains("begin to fail"))
        try receiver.release()
        let next = try LocalGateway(fixture.configuration)
        let again = try #require(try receiver.request(2))
        #expect(first["fields"]?.objectValue?["webhook-id"] != nil)
        #expect(
            first["fields"]?.objectValue?["webhook-id"]
                == again["fields"]?.objectValue?["webhook-id"])
        next.terminate()
    }

    @Test func `a webhook at a private address is not asked unless that is allowed`() throws {
        let fixture = try WebhookFixture(allowed: "")
        let (gateway, game, receiver) = (fixture.gateway, fixture.game, fixture.receiver)
        _ = try fixture.register(at: "/private")
        try game.change(gateway.http(), ["hero"], run: "one")
        let refused =
            "timeline_gateway_pushes_total{channel=\"webhook\",outcome=\"retry\","
            + "reason=\"address-not-allowed\"}"
        try blockUntil("refused") { try gateway.metrics()[refused] ?? 0 >= 1 }
        #expect(receiver.requestCount == 0)
        gateway.terminate()
    }
}
