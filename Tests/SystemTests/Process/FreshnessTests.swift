import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// The metrics of the time from a change to the rebuilt timeline.
@Suite(.alone) struct FreshnessTests {
    private static let prefix = "timeline_gateway_"

    /// Returns the value of one sample of the admin page; 0 while nothing was counted with its
    /// labels.
    private static func sample(_ admin: TestHTTP, _ name: String) throws -> Double {
        MetricsPage(try admin.request("GET", "/metrics").text)[prefix + name] ?? 0
    }

    static func acknowledge(
        _ gateway: LocalGateway, _ client: GameFixture.Client, _ cursor: String,
        _ rebuilt: [String], isUnchanged: Bool = false
    ) throws {
        let entries = rebuilt.map { character -> JSONValue in
            [
                "kind": "detail", "parameters": ["character": .string(character)], "ms": 250,
                "unchanged": .bool(isUnchanged),
            ]
        }
        let answer = try gateway.http().request(
            "POST", "/v1/apps/\(GameFixture.app)/clients/\(client.name)/acks",
            token: client.token, headers: [("Content-Type", "application/json")],
            body: String(
                decoding: JSONValue.object([
                    "cursor": .string(cursor), "rebuilt": .array(entries),
                ]).serialized, as: UTF8.self))
        guard answer.status == 204 else { throw TestFailure(answer.text) }
    }

    /// Each rebuilt timeline counts once, with the change that made it stale and the client's
    /// notification channel; no other report of the client counts.
    @Test func aRebuildIsMeasuredFromItsChangeAndOnce() throws {
        let gateway = try LocalGateway()
        let admin = gateway.adminHTTP()
        let game = try GameFixture(gateway)
        let http = gateway.http()
        let poller = try game.client("poller", ["a", "b"])
        let follower = try game.client("follower", ["a"])
        func counts() throws -> [Double] {
            try [
                "freshness_sent_seconds_count{channel=\"stream\",kind=\"detail\"}",
                "freshness_sent_seconds_count{channel=\"poll\",kind=\"detail\"}",
                "freshness_confirmed_seconds_count{channel=\"stream\",kind=\"detail\"}",
                "freshness_confirmed_seconds_count{channel=\"poll\",kind=\"detail\"}",
                "rebuild_seconds_count",
            ].map { try Self.sample(admin, $0) }
        }
        // The last of three changes in one post; two of them affect no client.
        _ = try game.change(http, ["x", "a", "y"], run: "one")
        let cursor = try game.poll(poller, since: poller.cursor).cursor
        _ = try game.poll(poller, since: poller.cursor)
        #expect(try counts() == [0, 1, 0, 0, 0], "told once, however often it asks")
        try Self.acknowledge(gateway, poller, cursor, ["a", "b", "not registered"])
        // `b` was not stale.
        #expect(try counts() == [0, 1, 0, 1, 3])
        try Self.acknowledge(gateway, poller, cursor, ["a"])
        #expect(try counts() == [0, 1, 0, 1, 4], "it was confirmed before")
        let confirmed = try Self.sample(
            admin, "freshness_confirmed_seconds_sum{channel=\"poll\",kind=\"detail\"}")
        #expect(confirmed >= 0)

        let stream = game.stream(follower)
        try #require(stream.head()?.status == 200)
        let head = try game.change(http, ["a"], run: "two")
        let last = try stream.cursor(covering: head)
        try Self.acknowledge(gateway, follower, last, ["a"])
        // A delivery by a stream is counted once it is written.
        try blockUntil("both are counted") { try counts()[0] == 1 && counts()[2] == 1 }
        let after = try counts()
        #expect(after[4] == 5)
        #expect(try Self.sample(admin, "rebuild_seconds_sum") == 1.25)
        stream.close()
        #expect(gateway.terminate() == .status(0))
    }

    /// A rebuild without a difference counts once, and only if a change caused it.
    @Test func aRebuildForNothingIsCounted() throws {
        let gateway = try LocalGateway()
        let admin = gateway.adminHTTP()
        let game = try GameFixture(gateway)
        let poller = try game.client("poller", ["a", "b"])
        func count() throws -> Double {
            try Self.sample(admin, "needless_reloads_total{kind=\"detail\",reason=\"unchanged\"}")
        }
        try game.change(gateway.http(), ["a"], run: "one")
        let first = try game.poll(poller, since: poller.cursor).cursor
        try Self.acknowledge(gateway, poller, first, ["a", "b"], isUnchanged: true)
        #expect(try count() == 1, "`b` was not stale")
        try Self.acknowledge(gateway, poller, first, ["a"], isUnchanged: true)
        #expect(try count() == 1, "it was acknowledged before")
        try game.change(gateway.http(), ["a"], run: "two")
        let second = try game.poll(poller, since: first).cursor
        try Self.acknowledge(gateway, poller, second, ["a"])
        #expect(try count() == 1, "it shows something else")
        let app = try admin.request("GET", "/api/apps")["apps"]?.arrayValue?.first
        let kind = app?.objectValue?["kinds"]?.arrayValue?.first?.objectValue
        #expect(kind?["kind"] == "detail" && kind?["needless"] == 1)
    }

    /// The oldest unconfirmed change, separately for clients with a stream and for others. A
    /// poll confirms nothing, an acknowledgement does.
    @Test func theOldestChangeThatIsNotConfirmedIsKnown() throws {
        let clock = HeldClock()
        let gateway = try LocalGateway(clock: clock)
        let admin = gateway.adminHTTP()
        let game = try GameFixture(gateway)
        let poller = try game.client("poller", ["a"])
        let follower = try game.client("follower", ["b"])
        let stream = game.stream(follower)
        try #require(stream.head()?.status == 200)
        let app = "app=\"\(GameFixture.app)\""
        func expectAges(connected: Double, away: Double) throws {
            var ages: [Double] = []
            try blockUntil("[\(connected), \(away)]", details: { "\(ages)" }) {
                ages = try ["connected", "away"].map {
                    try Self.sample(admin, "oldest_unconfirmed_seconds{\(app),clients=\"\($0)\"}")
                }
                return ages == [connected, away]
            }
        }
        try game.change(gateway.http(), ["a"], run: "one")
        clock.advance(to: clock.now + 2_000)
        try expectAges(connected: 0, away: 2)
        let cursor = try game.poll(poller, since: poller.cursor).cursor
        try game.change(gateway.http(), ["b"], run: "two")
        let head = try game.change(gateway.http(), ["b"], run: "three")
        clock.advance(to: clock.now + 3_000)
        try expectAges(connected: 3, away: 5)
        try Self.acknowledge(gateway, poller, cursor, ["a"])
        try expectAges(connected: 3, away: 0)
        let last = try stream.cursor(covering: head)
        try Self.acknowledge(gateway, follower, last, ["b"])
        try expectAges(connected: 0, away: 0)
        stream.close()
    }
}
