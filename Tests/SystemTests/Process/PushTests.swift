import APNsSimulator
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// Pushes of a gateway to a push service over TLS.
@Suite(.alone) struct PushTests {
    @Test func `a device without a stream is pushed to, and nobody else`() async throws {
        let world = try PushFixture()
        try world.register("phone", ["hero"], token: "aa01")
        try world.register("other", ["villain"], token: "aa02")
        try world.change(["hero"], run: "one")
        try await world.until("pushed to") { $0.devices["aa01"]?.taken ?? 0 >= 1 }
        try world.change(["villain"], run: "two")
        try await world.until("pushed to") { $0.devices["aa02"]?.taken ?? 0 >= 1 }
        let push = try #require(world.apns.record.devices["aa01"]?.pushes.first)
        #expect(push.request.topic == "com.mygame.push-type.widgets")
        #expect(world.apns.record.taken == 2)
        #expect(world.apns.record.violations.isEmpty)
        await world.stop()
    }

    @Test func `a dead token is taken out of the registration`() async throws {
        let world = try PushFixture()
        world.apns.script("aa01", [.refused(.badDeviceToken)])
        try world.register("phone", ["hero"], token: "aa01")
        try world.change(["hero"], run: "one")
        try await world.until("refused") { $0.requests >= 1 }
        var delivery: [JSONValue] = []
        try await eventually("removed", details: { "\(delivery)" }) {
            let answer = try world.gateway.http().request(
                "GET", "/v1/apps/\(PushFixture.app)/clients/phone", token: world.backend)
            delivery = answer["delivery"]?.arrayValue ?? []
            return delivery == [["type": "stream"]]
        }
        try world.change(["hero"], run: "two")
        try world.register("phone", ["hero"], token: "aa02")
        try await world.until("pushed to") { $0.devices["aa02"]?.taken ?? 0 >= 1 }
        #expect(world.apns.record.devices["aa01"]?.requests == 1)
        await world.stop()
    }

    /// A token is opaque, and long ones are accepted: none may keep notifications from others.
    @Test func `one client's strange token stops nobody else's pushes`() async throws {
        let world = try PushFixture()
        try world.register("long", ["hero"], token: String(repeating: "ab", count: 512))
        #expect(throws: TestFailure.self) {
            // These are digits in Unicode, but not for a push service.
            try world.register("wide", ["hero"], token: "\u{FF21}\u{FF21}")
        }
        try world.change(["hero"], run: "one")
        try world.register("phone", ["villain"], token: "aa01")
        try world.change(["villain"], run: "two")
        try await world.until("pushed to") { $0.devices["aa01"]?.taken ?? 0 >= 1 }
        await world.stop()
    }

    @Test func `a stop lets pushes end, and a start pushes nothing twice`() async throws {
        let world = try PushFixture(asProcess: true)
        try world.register("phone", ["hero"], token: "aa01")
        try world.change(["hero"], run: "one")
        try await world.until("pushed to") { $0.devices["aa01"]?.taken ?? 0 >= 1 }
        #expect(world.gateway.terminate() == .status(0))
        try world.gateway.process.start()
        try world.register("other", ["villain"], token: "aa02")
        try world.change(["villain"], run: "two")
        try await world.until("pushed to") { $0.devices["aa02"]?.taken ?? 0 >= 1 }
        #expect(world.apns.record.devices["aa01"]?.taken == 1)
        #expect(world.apns.record.providerTokens.count == 1)
        await world.stop()
    }
}

/// Killed while it pushes: at whatever moment, each device gets a push after its last change.
@Suite(.alone) struct PushKillTests {
    private static let devices = 60
    private static let characters = 20

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `kill -9 during a push storm misses no device`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let world = try PushFixture(
            faults: [PushFault(.resetConnection(isTaken: true), share: 5_000)], seed: seed,
            options: ["interval: 1s", "widgetsPerDay: 50000"], asProcess: true)
        var shown: [String: [String]] = [:]
        let http = world.gateway.http()
        for index in 0..<Self.devices {
            let token = "aa" + String(format: "%04x", index)
            shown[token] = (0..<2).map { _ in "c\(random.below(Self.characters))" }
            try world.register("device\(index)", shown[token] ?? [], token: token, on: http)
        }
        var changedAt: [String: Int64] = [:]
        for round in 0..<3 {
            let post = world.gateway.http()
            let changed = (0..<8).map { _ in "c\(random.below(Self.characters))" }
            let at = Int64(Date().timeIntervalSince1970 * 1_000)
            try world.change(changed, run: "\(seed)-\(round)", on: post)
            for character in changed { changedAt[character] = at }
            try await Task.sleep(for: .milliseconds(random.below(400)))
            try world.gateway.process.kill()
            try world.gateway.process.start()
        }
        let due = shown.compactMapValues { $0.compactMap { changedAt[$0] }.max() }
        try await world.until("each device pushed after its last change (seed \(seed))") {
            record in
            due.allSatisfy { token, at in
                record.devices[token]?.pushes.last.map { $0.at >= at } ?? false
            }
        }
        let record = world.apns.record
        #expect(record.violations.isEmpty, "seed \(seed): \(record.violations)")
        #expect(record.providerTokens.count == 1, "seed \(seed)")
        #expect(record.devices.keys.allSatisfy { due[$0] != nil }, "seed \(seed)")
        await world.stop()
    }
}
