import APNsSimulator
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
