import APNsSimulator
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// The gateway's explanations are compared with the notifications that really arrived.
@Suite(.alone) struct ExplainTests {
    /// One client for each way of a change to it, and some that it does not reach.
    private struct World {
        let push: PushFixture
        let follower: GameFixture.Client
        let poller: GameFixture.Client

        init() throws {
            push = try PushFixture(options: ["interval: 1s", "widgetsPerDay: 1"])
            follower = try push.game.client("follower", ["hero"])
            poller = try push.game.client("poller", ["hero"])
            _ = try push.game.client("away", ["hero"])
            push.apns.script("bb01", [.refused(.unregistered)])
            try push.register("phone", ["hero"], token: "aa01")
            try push.register("dead", ["hero"], token: "bb01")
        }

        @discardableResult
        func change(_ run: String) throws -> UInt64 {
            try push.game.change(push.gateway.http(), ["hero"], run: run)
        }

        func outcomes(of sequence: UInt64) throws -> JSONObject {
            let answer = try push.gateway.http().request(
                "GET", "/v1/apps/\(PushFixture.app)/changes/\(sequence)/explain",
                token: push.backend)
            return try #require(answer["outcomes"]?.objectValue, "\(answer.text)")
        }

        func timelinectl(_ arguments: String...) throws -> String {
            let (exit, output) = try push.gateway.timelinectl(
                ["explain"] + arguments, token: push.backend, app: PushFixture.app)
            #expect(exit == .status(0))
            return output
        }
    }

    @Test func `what is explained is what was delivered`() async throws {
        let world = try World()
        let stream = world.push.game.stream(world.follower)
        try #require(stream.head()?.status == 200)
        let first = try world.change("one")
        _ = try stream.cursor(covering: first)
        let polled = try world.push.game.poll(world.poller, since: world.poller.cursor)
        #expect(polled.stale == ["detail character=hero"])
        try await world.push.until("pushed to") { $0.devices["aa01"]?.taken ?? 0 >= 1 }
        try await eventually("each client's outcome is said") {
            let outcomes = try world.outcomes(of: first)
            let sent = outcomes["sentBy"]?.objectValue
            return ["stream", "poll", "widgets"].allSatisfy { sent?[$0] == 1 }
                && outcomes["unreachable"] == 2 && outcomes["confirmed"] == 0
        }
        _ = try world.push.game.poll(world.poller, since: polled.cursor)
        #expect(try world.outcomes(of: first)["confirmed"] == 1)

        // A token that the push service no longer knows.
        try await eventually("the address is removed") {
            let dead = try world.push.explained("dead")
            let removed = dead["removedAddresses"]?.arrayValue?.first?.objectValue
            return removed?["channel"] == "widgets" && removed?["reason"] == "Unregistered"
        }
        let text = try world.timelinectl("client", "dead")
        #expect(text.contains("widgets address removed at 2"), "\(text)")

        // A device whose budget is used up.
        let second = try world.change("two")
        try await world.push.untilWithheld("phone", for: "budget")
        let phone = try world.push.explained("phone")
        let budget = phone["addresses"]?.arrayValue?.first?.objectValue?["budget"]
        #expect(budget?.objectValue?["left"] == 0 && budget?.objectValue?["perDay"] == 1)
        #expect(world.push.apns.record.devices["aa01"]?.taken == 1)
        #expect(try world.timelinectl("client", "phone").contains("withheld budget until 2"))
        #expect(try world.timelinectl("change", "\(second)").contains("withheld"))

        // A change that waits for the end of a window.
        #expect(try world.push.game.put(GameFixture.catalog(collapse: "3600s")) == 200)
        try world.change("three")
        let fourth = try world.change("four")
        try await eventually("waiting") {
            let reasons = try world.outcomes(of: fourth)["withheldFor"]?.arrayValue ?? []
            return reasons.contains { $0.objectValue?["reason"] == "collapse" }
        }
        stream.close()
        await world.push.stop()
    }
}

/// The routes that explain changes and clients, and the commands that use them.
@Suite(.alone) struct ExplainRouteTests {
    private static let base = "/v1/apps/\(GameFixture.app)"

    private static func event(_ id: String) -> JSONValue {
        ExplainRouteTests.event(entity: "Character", id)
    }

    private static func event(entity: String, _ id: String) -> JSONValue {
        [
            "specversion": "1.0", "type": "changed", "source": "test", "id": .string(id),
            "data": ["entity": .string(entity), "id": .string(id)],
        ]
    }

    @Test func explainingChangesNothing() throws {
        let gateway = try LocalGateway()
        let game = try GameFixture(gateway)
        let http = gateway.http()
        let client = try game.client("c", ["a", "b"])
        func explain(_ body: JSONValue, _ type: String) throws -> TestHTTPAnswer {
            try http.request(
                "POST", Self.base + "/changes/explain", token: game.backend,
                headers: [("Content-Type", type)], body: body.text)
        }
        let one = try explain(Self.event("a"), "application/cloudevents+json")
        #expect(one.status == 200)
        let event = try #require(one["events"]?.arrayValue?.first?.objectValue)
        #expect(event["unmatched"] == false && event["broad"] == false)
        #expect(
            event["rules"] == [
                [
                    "kind": "detail", "target": "timeline",
                    "place": "widgets[0].dependsOn[0]", "verdict": "hit", "broad": false,
                    "keys": [
                        [["attribute": "id", "binding": "$character", "value": "a"]],
                        [["attribute": "id", "binding": "$character", "unset": true]],
                    ],
                ]
            ])
        #expect(
            event["holders"] == [
                "count": 1, "widgets": 1, "clients": 1, "kinds": ["detail": 1],
                "platforms": ["iOS": 1], "channels": ["poll": 1],
            ])
        #expect(event["outcomes"]?.objectValue?["unreachableFor"] == ["awaits-client": 1])
        let batch = try explain(
            [Self.event("z"), Self.event(entity: "Charakter", "a")],
            "application/cloudevents-batch+json")
        let events = batch["events"]?.arrayValue?.compactMap(\.objectValue) ?? []
        #expect(events.map { $0["unmatched"] } == [false, true])
        #expect(
            events.last?["hint"]
                == "no rule names this entity; did you mean `Character`?")
        let many = JSONValue.array((0..<101).map { Self.event("\($0)") })
        #expect(try explain(many, "application/cloudevents-batch+json").status == 413)
        let binary = try http.request(
            "POST", Self.base + "/changes/explain", token: game.backend,
            headers: [
                ("Content-Type", "application/json"), ("ce-specversion", "1.0"),
                ("ce-type", "t"), ("ce-source", "s"), ("ce-id", "1"),
            ], body: #"{"entity":"Character"}"#)
        #expect(
            binary["events"]?.arrayValue?.first?.objectValue?["broad"] == true,
            "\(binary.text)")
        // The first change of all, after the catalog.
        #expect(try game.change(http, ["a"], run: "one") == 2)
        #expect(try game.poll(client, since: client.cursor).stale.count == 1)
        #expect(gateway.terminate() == .status(0))
    }

    /// A change is explained by the catalog that decided it. A start forgets which
    /// notifications clients without pushes received, and says so.
    @Test func theLogIsExplainedByTheCatalogOfItsTime() throws {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        var http = gateway.http()
        let client = try game.client("c", ["a"])
        let first = try game.change(http, ["a"], run: "one")
        let deletions = GameFixture.catalog(rule: "entity: Character, operations: [delete]")
        #expect(try game.put(deletions) == 200)
        let second = try game.change(http, ["a", "b"], run: "two")
        func explain(_ sequence: UInt64) throws -> JSONObject {
            try #require(
                http.request(
                    "GET", Self.base + "/changes/\(sequence)/explain", token: game.backend
                ).json?.objectValue)
        }
        func check() throws {
            let before = try explain(first)
            #expect(before["unmatched"] == false && before["catalogOfThen"] == true)
            #expect(before["catalog"] == 1)
            let after = try explain(second)
            #expect(after["unmatched"] == true && after["catalogOfThen"] == true)
            #expect(after["catalog"] == 3)
            let page = try http.request("GET", Self.base + "/changes?limit=2", token: game.backend)
            let changes = page["changes"]?.arrayValue?.compactMap(\.objectValue) ?? []
            #expect(changes.map { $0["sequence"] } == [5, 4])
            #expect(changes.map { $0["kinds"] } == [[:], [:]])
            let rest = try http.request(
                "GET", Self.base + "/changes?before=\(page["before"]?.integerValue ?? 0)",
                token: game.backend)
            let older = rest["changes"]?.arrayValue?.compactMap(\.objectValue) ?? []
            #expect(older.map { $0["sequence"] } == [2])
            #expect(older.first?["kinds"] == ["detail": 2])
            #expect(rest["before"] == nil)
        }
        try check()
        let cursor = try game.poll(client, since: client.cursor).cursor
        #expect(try explain(first)["outcomes"]?.objectValue?["sentBy"] == ["poll": 1])
        _ = try game.poll(client, since: cursor)
        #expect(try explain(first)["outcomes"]?.objectValue?["confirmed"] == 1)
        try gateway.restart()
        http = gateway.http()
        try check()
        #expect(
            try explain(first)["outcomes"]?.objectValue?["unreachableFor"]
                == ["unknown-since-start": 1])
        let game2 = try http.request("GET", Self.base + "/clients/c/explain", token: game.backend)
        #expect(game2["heardOf"] == false)
        #expect(gateway.terminate() == .status(0))
    }

    @Test func theCommandsSayItForPeople() throws {
        let gateway = try LocalGateway()
        let game = try GameFixture(gateway)
        _ = try game.client("c", ["a", "b"])
        let change = try game.change(gateway.http(), ["a"], run: "one")
        func run(_ arguments: [String]) throws -> String {
            let (exit, output) = try gateway.timelinectl(
                arguments, token: game.backend, app: GameFixture.app)
            #expect(exit == .status(0), "\(output)")
            return output
        }
        #expect(try run(["explain", "change", "\(change)"]).hasPrefix("change \(change)  "))
        let unposted = try run(["explain", "change", "--entity", "Character", "--id", "b"])
        #expect(unposted.hasPrefix("not posted  Character b"), "\(unposted)")
        let json = try run(["explain", "client", "c", "--json"])
        let object = try #require(JSONValue(parsing: Array(json.trimmingSuffix.utf8)).objectValue)
        #expect(object["widgets"]?.arrayValue?.map { $0.objectValue?["fresh"] } == [false, true])
        let catalog = gateway.data + "/proposed.yaml"
        try GameFixture.catalog(rule: "entity: Character")
            .write(toFile: catalog, atomically: true, encoding: .utf8)
        let diff = try run(["catalog", "diff", "--file", catalog, "--since", "1h"])
        #expect(diff.hasPrefix("1 changes since "), "\(diff)")
        #expect(gateway.terminate() == .status(0))
    }
}

extension String {
    fileprivate var trimmingSuffix: String {
        String(reversed().drop { $0.isWhitespace }.reversed())
    }
}
