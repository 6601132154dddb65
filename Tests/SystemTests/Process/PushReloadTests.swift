import APNsSimulator
import Foundation
import GatewaySigning
import GatewayTLS
import GatewayTestSupport
import Testing
import WidgetModel

/// Changes of the push configuration while the gateway runs.
@Suite(.alone) struct PushReloadTests {
    private static let fast = ["interval: 1s", "widgetsPerDay: 50000"]

    @Test func `a key is rotated under a stream of pushes, of which none is lost or doubled`()
        async throws
    {
        let (devices, characters, rounds) = (40, 10, 9)
        let world = try PushFixture(options: Self.fast, others: ["KEY7654321"], clock: HeldClock())
        for index in 0..<devices {
            try world.register(
                "device\(index)", ["c\(index % characters)"],
                token: "aa" + String(format: "%04x", index))
        }
        let sections = [world.section(key: "KEY7654321"), world.section()]
        var changedAt: Int64 = 0
        for round in 0..<rounds {
            changedAt = Int64(Date().timeIntervalSince1970 * 1_000)
            try world.change((0..<characters).map { "c\($0)" }, run: "\(round)")
            // With some pushes in flight; and back again.
            if round % 4 == 3, round < rounds - 1 {
                try world.reconfigure([sections[round / 4]], options: Self.fast)
            }
            let posted = changedAt
            try await world.until("a device pushed after the change") { record in
                record.devices.values.contains { $0.pushes.last?.at ?? 0 >= posted }
            }
        }
        try await world.until("each device pushed after its last change") { record in
            record.devices.count == devices
                && record.devices.values.allSatisfy { $0.pushes.last?.at ?? 0 >= changedAt }
        }
        // Connections that are not used any more are closed.
        try await world.until("one connection left") { $0.openConnections <= 1 }
        let record = world.apns.record
        #expect(record.violations.isEmpty, "\(record.violations)")
        #expect(record.duplicates == 0)
        #expect(record.devices.values.allSatisfy { $0.taken <= rounds })
        // One token for each key: a key that is configured again still has its token.
        #expect(
            record.providerTokens.map(\.keyID) == ["KEY1234567", "KEY7654321"],
            "\(record.providerTokens.map(\.keyID))")
        await world.stop()
    }

    @Test func `a key file that is none changes nothing, and a wrong key stops only so long`()
        async throws
    {
        let world = try PushFixture(options: Self.fast)
        let key = URL(filePath: world.folder + "/KEY1234567.p8")
        let right = try Data(contentsOf: key)
        try world.register("phone", ["hero"], token: "aa01")
        try Data("nonsense".utf8).write(to: key)
        let refused = try world.gateway.reloadConfiguration()
        #expect(refused.status == 422)
        #expect(refused.text.contains("apns.0.key") && refused.text.contains("KEY1234567.p8"))
        try world.change(["hero"], run: "one")
        try await world.until("pushed with the old key") { $0.taken >= 1 }
        // A key of another team, with the same file name.
        try SigningKey(generating: .es256).save(to: world.folder + "/other.p8")
        #expect(rename(world.folder + "/other.p8", key.path) == 0)
        try world.reload()
        try world.change(["hero"], run: "two")
        try await world.until("refused") {
            $0.answers.keys.contains { $0.reason == "InvalidProviderToken" }
        }
        try world.change(["hero"], run: "three")
        try await world.untilWithheld("phone", for: "stopped")
        #expect(world.apns.record.taken == 1)
        // No reload is requested: the file is watched.
        try right.write(to: key, options: .atomic)
        try await world.until("what was owed is pushed") { $0.taken >= 2 }
        #expect(world.apns.record.devices["aa01"]?.taken == 2)
        await world.stop()
    }

    @Test func `apps and topics come, change and go, and what was owed goes out`() async throws {
        let world = try PushFixture(options: Self.fast)
        func section(topic: String) -> String {
            world.section(also: ", topic: \(topic)")
        }
        try world.reconfigure([])
        try world.register("phone", ["hero"], token: "aa01")
        try world.change(["hero"], run: "one")
        #expect(world.apns.record.requests == 0)
        try world.reconfigure([section(topic: "com.first")], options: Self.fast)
        try await world.until("pushed") { $0.taken >= 1 }
        // A rejected topic is stopped until another one replaces it.
        world.apns.script("aa01", [.refused(.topicDisallowed), .take])
        try world.change(["hero"], run: "two")
        try await world.until("refused") { $0.requests >= 2 }
        try world.change(["hero"], run: "three")
        try await world.untilWithheld("phone", for: "stopped")
        #expect(world.apns.record.requests == 2)
        try world.reconfigure([section(topic: "com.second")], options: Self.fast)
        try await world.until("pushed") { $0.taken >= 2 }
        let topics = world.apns.record.devices["aa01"]?.pushes.map(\.request.topic)
        #expect(topics == ["com.first.push-type.widgets", "com.second.push-type.widgets"])
        #expect(world.apns.record.providerTokens.count == 1)
        await world.stop()
    }

    @Test func `budgets and intervals are those of the moment`() async throws {
        let world = try PushFixture(options: ["interval: 1h", "widgetsPerDay: 48"])
        try world.register("phone", ["hero"], token: "aa01")
        try world.change(["hero"], run: "one")
        try await world.until("pushed") { $0.taken >= 1 }
        try world.change(["hero"], run: "two")
        try await world.untilWithheld("phone", for: "interval")
        #expect(world.apns.record.taken == 1)
        let section = world.section()
        try world.reconfigure([section], options: ["interval: 1s", "widgetsPerDay: 1"])
        // The budget allows one push, which was spent.
        try await world.untilWithheld("phone", for: "budget")
        #expect(world.apns.record.taken == 1)
        try world.reconfigure([section], options: ["interval: 1s", "widgetsPerDay: 100000"])
        // The budget allows more than one push a second.
        try await world.until("what was withheld is pushed") { $0.taken >= 2 }
        await world.stop()
    }

    @Test func `webhooks are asked, and where, as of the moment`() async throws {
        let clock = HeldClock()
        let world = try PushFixture(options: Self.fast, clock: clock)
        let certificates = world.folder + "/certs"
        let receiver = try WebhookReceiver(in: world.folder)
        func register() throws -> TestHTTPAnswer {
            try receiver.register(at: "/hook", on: world.gateway, token: world.backend)
        }
        // The key signs questions to sources of content, too.
        #expect(try register()["webhookKeys"]?.arrayValue?.count == 1)
        try world.change(["hero"], run: "one")
        let webhooks = "webhooks: { enabled: true, ca: \(certificates)/ca.pem"
        try world.reconfigure([], also: [webhooks + " }"])
        try await eventually("refused") {
            try world.attempts("client=renderer").text.contains("address-not-allowed")
        }
        #expect(try register()["webhookKeys"]?.arrayValue?.count == 1)
        try world.reconfigure([], also: [webhooks + ", allowedRanges: [127.0.0.0/8] }"])
        // According to its schedule, some seconds after the failure.
        clock.advance(to: clock.now + 10_000)
        #expect(try receiver.request(1)?["path"] == "/hook")
        await world.stop()
    }

    @Test func `certificates that replace others in the same file are trusted`() async throws {
        let clock = HeldClock()
        let world = try PushFixture(options: Self.fast, clock: clock)
        let certificates = world.folder + "/certs"
        let receiver = try WebhookReceiver(in: world.folder)
        let trust = world.folder + "/trust.pem"
        let other = try DevelopmentCertificates.ensure(
            in: world.folder + "/other", now: Int64(Date().timeIntervalSince1970))
        try FileManager.default.copyItem(atPath: other.ca, toPath: trust)
        try world.reconfigure(
            [],
            also: ["webhooks: { enabled: true, ca: \(trust), allowedRanges: [127.0.0.0/8] }"])
        _ = try receiver.register(at: "/hook", on: world.gateway, token: world.backend)
        try world.change(["hero"], run: "one")
        try await eventually("refused") {
            try world.attempts("client=renderer").text.contains("not-trusted")
        }
        #expect(receiver.requestCount == 0)
        let right = try Data(contentsOf: URL(filePath: certificates + "/ca.pem"))
        try right.write(to: URL(filePath: trust), options: .atomic)
        try world.reload()
        // According to its schedule, some seconds after the failure.
        clock.advance(to: clock.now + 10_000)
        #expect(try receiver.request(1)?["path"] == "/hook")
        await world.stop()
    }
}
