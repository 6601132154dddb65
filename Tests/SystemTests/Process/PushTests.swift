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
        for query in ["limit=0", "before=x", "channel=carrier", "client=a%2Fb"] {
            let answer = try world.attempts(query)
            #expect(answer.status == 422 && answer.text.contains(query.prefix(5)))
        }
        await world.stop()
    }
}

/// A gateway, and a push service that behaves and fails like APNs.
final class PushFixture: Sendable {
    static let app = GameFixture.app

    let gateway: any TestGateway
    let apns: APNsServer
    let game: GameFixture
    var backend: String { game.backend }
    /// The directory of its keys and its configuration.
    var folder: String { configuration.folder }
    private let configuration: GatewayConfiguration
    private let clock: HeldClock?

    /// - Parameters:
    ///   - faults: The occasional faults of the push service.
    ///   - options: Lines of the push configuration in addition to the usual ones.
    ///   - more: Lines of the rest of the configuration.
    ///   - others: The ids of further keys that the push service knows.
    ///   - clock: The gateway's clock; a second passes with each look of ``until(_:_:)``.
    ///   - asProcess: Whether the gateway is a process of its own.
    init(
        faults: [PushFault] = [], seed: UInt64 = 1, options: [String] = [], more: [String] = [],
        others: [String] = [], clock: HeldClock? = nil, asProcess: Bool = false
    ) throws {
        self.clock = clock
        configuration = try GatewayConfiguration()
        apns = try configuration.startAPNs(
            keys: ["KEY1234567"] + others, faults: faults, seed: seed)
        try configuration.writePush(
            [configuration.apnsSection(of: Self.app)], port: apns.port, options: options,
            also: more)
        gateway = try configuration.start(asProcess: asProcess, clock: clock)
        game = try GameFixture(gateway)
    }

    /// Returns the app's part of the configuration.
    func section(key: String = "KEY1234567", also more: String = "") -> String {
        configuration.apnsSection(of: Self.app, key: key, also: more)
    }

    /// Rewrites the configuration, and has the gateway read it.
    func reconfigure(
        _ sections: [String], options: [String] = [], also lines: [String] = []
    ) throws {
        try configuration.writePush(sections, port: apns.port, options: options, also: lines)
        try reload()
    }

    /// Has the gateway read its configuration, and the files that it names.
    func reload() throws {
        let answer = try gateway.reloadConfiguration()
        guard answer.status == 200 else { throw TestFailure(answer.text) }
    }

    /// Asks for the attempts that a query is about.
    func attempts(_ query: String) throws -> TestHTTPAnswer {
        try gateway.http().request("GET", "/v1/apps/\(Self.app)/attempts?\(query)", token: backend)
    }

    /// Stops the gateway and the push service.
    func stop() async {
        gateway.terminate()
        await apns.stop()
    }

    /// Registers a device that shows characters.
    func register(
        _ client: String, _ characters: [String], token: String, on http: TestHTTP? = nil
    ) throws {
        let answer = try (http ?? gateway.http()).register(
            client, app: Self.app, token: backend,
            registration(showing: characters, delivery: addresses(pushToken: token)))
        guard answer.status == 201 || answer.status == 200 else {
            throw TestFailure(answer.text)
        }
    }

    /// Posts one change of each character; returns once they are on disk.
    func change(_ characters: [String], run: String, on http: TestHTTP? = nil) throws {
        try game.change(http ?? gateway.http(), characters, run: run)
    }

    /// Waits until a condition holds for the push service's record.
    func until(_ what: String, _ holds: (PushRecord) -> Bool) async throws {
        try await apns.until(
            what, of: gateway,
            tick: { if let clock { clock.advance(to: clock.now + 1_000) } }, holds)
    }

    /// Returns what the gateway says of a client.
    func explained(_ client: String) throws -> JSONObject {
        try gateway.http().explained(client, app: Self.app, token: backend)
    }

    /// Waits until the gateway says that the newest change of a client's first widget is withheld
    /// for `reason`.
    func untilWithheld(_ client: String, for reason: String) async throws {
        try await eventually("withheld for \(reason)") {
            let widget = try explained(client)["widgets"]?.arrayValue?.first?.objectValue
            return widget?["reason"]?.stringValue == reason
        }
    }
}
