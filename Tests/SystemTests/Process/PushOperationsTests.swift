import APNsSimulator
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// The push operations of `timelinectl`, with a real gateway.
@Suite(.alone) struct PushOperationsTests {
    private func timelinectl(
        _ world: PushFixture, _ arguments: [String], token: String? = nil
    ) throws -> (exit: GatewayProcessExit, output: String) {
        try world.gateway.timelinectl(
            arguments, token: token ?? world.backend, app: PushFixture.app)
    }

    private func attempts(
        _ world: PushFixture, count: Int, _ arguments: [String] = []
    ) async throws -> [JSONObject] {
        var found: [JSONObject] = []
        try await eventually("as many attempts", details: { "\(found)" }) {
            let (exit, output) = try timelinectl(world, ["attempts", "--json"] + arguments)
            #expect(exit == .status(0), "\(output)")
            let answer = try JSONValue(parsing: Array(output.utf8)).objectValue
            found = (answer?["attempts"]?.arrayValue ?? []).compactMap(\.objectValue)
            return found.count >= count
        }
        return found
    }

    @Test func `a device is pushed to again, and what came of it is listed`() async throws {
        let device = String(repeating: "aa01", count: 8)
        let world = try PushFixture()
        try world.register("phone", ["hero"], token: device)
        try world.change(["hero"], run: "one")
        try await world.until("pushed to") { $0.devices[device]?.taken ?? 0 >= 1 }
        world.apns.script(device, [.refused(.badDeviceToken), .answer(.taken)])
        for request in 2...3 {
            let (exit, output) = try timelinectl(
                world, ["resend", "--client", "phone", "--channel", "widgets"])
            #expect(exit == .status(0) && output == "1 push started\n", "\(output)")
            try await world.until("asked again") { $0.requests >= request }
        }
        #expect(world.apns.record.devices[device]?.taken == 2)
        let listed = try await attempts(world, count: 3)
        #expect(listed.map { $0["outcome"] } == ["sent", "failed", "sent"])
        #expect(listed.map { $0["cause"] } == ["manual", "manual", "no-stream"])
        #expect(listed[1]["reason"] == "BadDeviceToken")
        #expect(listed.allSatisfy { $0["client"] == "phone" && $0["channel"] == "widgets" })
        // A rejection of a push that a person requested has no effect on the device.
        let registered = try world.gateway.http().request(
            "GET", "/v1/apps/\(PushFixture.app)/clients/phone", token: world.backend)
        #expect(registered["delivery"]?.arrayValue?.count == 2)

        let sent = try await attempts(world, count: 1, ["--outcome", "sent", "--limit", "1"])
        #expect(sent.count == 1)
        let before = try #require(sent.first?["number"]?.integerValue)
        let earlier = try await attempts(
            world, count: 1, ["--outcome", "sent", "--before", "\(before)"])
        #expect(earlier.count == 1)
        let (exit, table) = try timelinectl(world, ["attempts", "--limit", "2"])
        #expect(exit == .status(0) && table.hasPrefix("TIME "), "\(table)")
        #expect(table.contains("BadDeviceToken") && table.contains("next page: --before"))
        #expect(!table.contains(device))
        await world.stop()
    }

    @Test func `a topic that APNs refuses is an event, once`() async throws {
        let world = try PushFixture()
        for (index, token) in ["aa01", "aa02"].enumerated() {
            world.apns.script(token, [.refused(.topicDisallowed)])
            try world.register("phone\(index)", ["hero"], token: token)
        }
        try world.change(["hero"], run: "one")
        try await world.until("refused") { $0.requests >= 1 }
        _ = try await attempts(world, count: 1)
        let (exit, output) = try timelinectl(world, ["events"])
        #expect(exit == .status(0))
        let lines = output.split(separator: "\n")
        #expect(lines.count == 2 && lines.first?.hasPrefix("TIME ") == true, "\(output)")
        #expect(lines.last?.contains("topic-refused") == true)
        #expect(lines.last?.contains("TopicDisallowed") == true)
        await world.stop()
    }

    @Test func `what cannot be asked is refused with its reason`() async throws {
        let world = try PushFixture()
        try world.register("phone", ["hero"], token: "aa01")
        for (arguments, says) in [
            (["resend", "--client", "phone", "--channel", "webhook"], "channel"),
            (["resend", "--client", "nobody", "--channel", "widgets"], "not registered"),
            (["attempts", "--outcome", "lost"], "outcome"),
        ] {
            let (exit, output) = try timelinectl(world, arguments)
            #expect(exit == .status(1) && output.contains(says), "\(output)")
        }
        let client = try world.gateway.token(app: PushFixture.app, scope: "changes:write")
        for arguments in [
            ["resend", "--client", "phone", "--channel", "widgets"], ["attempts"], ["events"],
        ] {
            let (exit, output) = try timelinectl(world, arguments, token: client)
            #expect(exit == .status(1) && output.contains("scope"), "\(output)")
        }
        for arguments in [
            ["resend", "--client", "phone", "--channel", "carrier"],
            ["attempts", "--limit", "1001"], ["attempts", "--client", "a/b"],
        ] {
            #expect(try timelinectl(world, arguments).exit == .status(2))
        }
        let http = world.gateway.http()
        for query in ["limit=0", "before=x", "channel=carrier", "client=a%2Fb"] {
            let answer = try http.request(
                "GET", "/v1/apps/\(PushFixture.app)/attempts?\(query)", token: world.backend)
            #expect(answer.status == 422 && answer.text.contains(query.prefix(5)))
        }
        await world.stop()
    }
}
