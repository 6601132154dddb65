import APNsSimulator
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// Live Activities of many apps, judged by what APNs and the sources of content have recorded.
@Suite(.alone) struct ActivityStormTests {
    private static let (good, storm) = ("com.good", "com.storm")
    /// The apps whose sources fail: the path of the source, and the word for how it fails.
    private static let failing = [
        ("com.slow", "/silent", "timed-out"), ("com.status", "/status", "status"),
        ("com.invalid", "/invalid", "invalid"), ("com.large", "/large", "too-large"),
        ("com.down", "", "unreachable"),
    ]
    /// A push of priority 10 an hour, and one of priority 5 in two hours, without savings.
    private static let budgets = ["activitiesPerDay: 24", "quietActivitiesPerDay: 12"]

    /// The heroes of the app without faults; the activities of the last end after 22 hours.
    private static let heroes = (0..<5).map { "good-\($0)" }
    private static let phones = (0..<10).map { number in
        ActivityDevice(good, "phone-\(number)", hero: heroes[number % heroes.count])
    }
    private static let crowd = (0..<6).map { number in
        ActivityDevice(good, "crowd-\(number)", hero: "match", type: "Match")
    }
    /// Its hero changes more often than its budget allows.
    private static let fan = ActivityDevice(good, "fan", hero: "fan")

    private static func starters(_ app: String, _ count: Int) -> [ActivityDevice] {
        (0..<count).map { number in
            ActivityDevice(app, "starter-\(number)", hero: "start", sort: .start)
        }
    }

    // MARK: A day

    /// Lets a day pass. At each full hour something happens to `others`, and then everything
    /// of the app without faults changes and is pushed before time goes on.
    ///
    /// - Returns: The app's devices.
    private func day(
        _ world: ActivityFixture, others: (_ hour: Int) throws -> Void
    ) async throws -> [ActivityDevice] {
        let clock = try #require(world.clock)
        let fan = Self.fan
        let devices = Self.phones + Self.crowd + [fan] + Self.starters(Self.good, 2)
        try world.register(devices)
        let channel = try world.openChannel("match", of: Self.good, hero: Self.heroes[0])
        let ending = Self.phones.filter { $0.hero == Self.heroes.last }
        var watched = devices.filter { $0 != fan } + [channel]
        let begin = clock.now
        var told = 0
        func untilTold(_ count: Int) async throws {
            told = count
            try await world.apns.until("the fan told \(count) times", of: world.gateway) {
                $0.devices[fan.address]?.taken ?? 0 >= count
            }
        }
        for hour in 0..<24 {
            clock.advance(to: begin + Int64(hour) * 3_600_000)
            try others(hour)
            // What its budget withheld an hour ago.
            if hour > 0 { try await untilTold(told + 1) }
            if hour == 23 {
                // Neither wakes an activity that has ended.
                try world.register(ending, osVersion: "26.1")
                #expect(try world.gateway.reloadConfiguration().status == 200)
                watched.removeAll { ending.contains($0) }
            }
            try world.change(
                Self.heroes + ["match"], of: Self.good,
                urgency: [Urgency.low, .normal, .high][hour % 3],
                ending: hour == 22 ? Self.heroes.last : nil)
            if hour == 2 || hour == 10 {
                try world.start("start-\(hour)", of: Self.good, hero: "start")
            }
            try await world.apns.until("hour \(hour) shown", of: world.gateway) { record in
                watched.allSatisfy { world.isShown($0, record) }
            }
            // One more push than is allowed now; the last change waits.
            let allowed = hour + 1 + hour / 2 + 1
            for _ in 0..<3 {
                try world.change(["fan"], of: Self.good, urgency: .high)
                try await untilTold(min(told + 1, allowed))
            }
        }
        return devices + [channel]
    }

    // MARK: The storm

    private static func script(
        _ faults: StormFaults, _ random: inout SplitMix64
    ) -> [PushBehaviour] {
        // Silence lasts half a minute of the machine's time, whatever the gateway's clock says.
        faults.script(draws: 20, silencesIn: 3, &random)
    }

    /// The devices of the app whose pushes meet faults; two activities for each phone.
    private func stormyDevices(
        _ world: ActivityFixture, _ random: inout SplitMix64
    ) throws -> [ActivityDevice] {
        let phones = (0..<36).map { number in
            ActivityDevice(Self.storm, "phone-\(number / 2)", hero: "storm-\(number % 6)")
        }
        let groups = [StormFaults.requests, .devices, .connections]
        for (number, device) in phones.enumerated() {
            let script = Self.script(groups[number / 6 % 3], &random)
            world.apns.script(device.address, script)
        }
        let starters = Self.starters(Self.storm, 4)
        for device in starters {
            // A start that is refused is not pushed again.
            world.apns.script(device.address, StormFaults.passing.script(draws: 4, &random))
        }
        try world.register(phones + starters)
        let channel = try world.openChannel("match", of: Self.storm, hero: "storm-0")
        world.apns.script(channel.address, Self.script(.connections, &random))
        return phones + starters + [channel]
    }

    @Test func `with 5 % of every fault each activity shows its last change, in order`()
        async throws
    {
        var random = SplitMix64(seed: 7)
        let failing = Self.failing
        let world = try ActivityFixture(
            [(Self.good, "/good"), (Self.storm, "/good")] + failing.map { ($0.0, $0.1) },
            options: Self.budgets, clock: HeldClock())
        let stormy = try stormyDevices(world, &random)
        // The slow source has more questions than may be asked at a time.
        let unlucky = failing.flatMap { app, path, _ in
            (0..<(path == "/silent" ? 18 : 2)).map { number in
                ActivityDevice(app, "phone-\(number)", hero: app)
            }
        }
        try world.register(unlucky)
        let heroes = (0..<6).map { "storm-\($0)" }
        let good = try await day(world) { hour in
            if hour.isMultiple(of: 6) {
                for (app, _, _) in failing { try world.change([app], of: app) }
            }
            if hour == 0 {
                try blockUntil("all are asked that may be at a time") {
                    world.questions(to: "/silent") == 16
                }
            }
            let changed = hour.isMultiple(of: 4) ? heroes : [random.pick(heroes)]
            try world.change(
                changed, of: Self.storm, urgency: random.pick([.low, .normal, .high]),
                ending: hour == 20 ? heroes.last : nil)
        }
        for id in ["one", "two"] {
            try world.start(id, of: Self.storm, hero: "start")
        }
        let devices = good + stormy
        let reasons = try await world.settle(devices)
        try await judgeFailures(world, unlucky)
        try await world.stop()
        let record = world.apns.record
        judge(devices, reasons, world, record)
        #expect(unlucky.allSatisfy { record.devices[$0.address] == nil })
    }

    /// Checks that each source that fails is named to its app and to operators.
    private func judgeFailures(_ world: ActivityFixture, _ unlucky: [ActivityDevice]) async throws {
        for (app, path, word) in Self.failing {
            let device = try #require(unlucky.first { $0.app == app })
            var document: JSONObject = [:]
            try await eventually("\(app) explained", details: { "\(document)" }) {
                document = try world.explained(device)
                let item = document["activities"]?.arrayValue?.first?.objectValue
                let address = document["addresses"]?.arrayValue?.first?.objectValue
                return item?["reason"] == "content"
                    && address?["problem"]?.stringValue?.hasSuffix(" fails: \(word).") ?? false
            }
            let sample =
                "timeline_gateway_content_requests_total{app=\"\(app)\",outcome=\"\(word)\"}"
            #expect(try world.gateway.metrics()[sample] ?? 0 >= 1, "\(app)")
            #expect(path.isEmpty || world.questions(to: path) > 0, "\(app)")
        }
    }

    /// Checks what APNs accepted, and in which order.
    ///
    /// - Parameter reasons: Why some devices do not show their last change.
    private func judge(
        _ devices: [ActivityDevice], _ reasons: [ActivityDevice: String],
        _ world: ActivityFixture, _ record: PushRecord
    ) {
        // Nothing was sent out of order, after an end that was accepted, or to a dead token.
        #expect(world.disorder(of: devices, record).isEmpty)
        #expect(record.violations.isEmpty, "\(record.violations)")
        #expect(record.duplicates == 0)
        for device in devices {
            let known = record.devices[device.address]
            let contents = known?.activities ?? []
            switch reasons[device] {
            case nil: #expect(world.isShown(device, record), "\(device)")
            case "ended"?: #expect(contents.last?.event == .end, "\(device)")
            case let reason?:
                let status = known?.last?.answer?.status ?? 0
                #expect(status >= 400, "\(device): \(reason), but answered \(status)")
            }
            // What was answered for one client is pushed to nobody else.
            let reader = device.type == "Match" ? "all" : device.client
            #expect(contents.allSatisfy { $0.reader == reader }, "\(device)")
        }
        // Without faults one push for each change, and for each start, in its hour.
        for device in devices where device.app == Self.good && device != Self.fan {
            let (isStart, hasEnded) = (device.sort == .start, device.hero == Self.heroes.last)
            let hours = isStart ? [2, 10] : Array(0..<(hasEnded ? 23 : 24))
            let pushes = record.devices[device.address]?.pushes ?? []
            let story = pushes.map { push in
                "\(ActivityPush(push.request).map { world.hour(of: $0) } ?? -1)"
                    + " \(push.request.priority ?? "-")"
            }
            // Low urgency is quiet; a start never is.
            let expected = hours.map { "\($0) \(!isStart && $0 % 3 == 0 ? 5 : 10)" }
            #expect(story == expected, "\(device)")
            #expect(reasons[device] == (hasEnded ? "ended" : nil), "\(device)")
        }
        // One question for each change of what all show.
        let shared = world.sources.questions.count {
            $0["asked"]?.objectValue?["type"] == "Match"
        }
        #expect(shared == 24)
        // No client had more than its budgets in any 24 hours, and the fan had all of them.
        for (client, own) in Dictionary(grouping: devices, by: { [$0.app, $0.client] }) {
            for (priority, perDay) in [("10", 24), ("5", 12)] {
                let most = world.mostInADay(own, priority: priority, record)
                let isRight = own == [Self.fan] ? most == perDay : most <= perDay
                #expect(isRight, "\(client): \(most) pushes of priority \(priority)")
            }
        }
    }

    // MARK: Kills

    @Test func `kill -9 loses no change or start, and no push goes back in time`() async throws {
        var random = SplitMix64(seed: 3)
        let app = Self.storm
        let world = try ActivityFixture(
            [(app, "/good")],
            options: ["activitiesPerDay: 50000", "quietActivitiesPerDay: 50000"])
        let heroes = (0..<4).map { "storm-\($0)" }
        let phones = (0..<12).map { number in
            ActivityDevice(app, "phone-\(number)", hero: heroes[number % heroes.count])
        }
        let starters = Self.starters(app, 2)
        try world.register(phones + starters)
        let channel = try world.openChannel("match", of: app, hero: heroes[0])
        let devices = phones + starters + [channel]
        try world.change(heroes, of: app)
        try world.start("first", of: app, hero: "start")
        #expect(try await world.settle(devices).isEmpty)
        // The times of the first pushes are stored with these.
        var stored: Set<String> = []
        try await eventually("stored", details: { "\(stored)" }) {
            stored = try world.pushedClients(of: app)
            return stored.count == devices.count
        }
        for round in 0..<3 {
            for _ in 0..<6 {
                try world.change([random.pick(heroes)], of: app, urgency: .high)
                pause(seconds: Double(random.below(100)) / 1_000)
            }
            try world.start("start-\(round)", of: app, hero: "start")
            pause(seconds: Double(random.below(400)) / 1_000)
            try world.restart()
        }
        try world.change(heroes, of: app)
        #expect(try await world.settle(devices).isEmpty)
        try await world.stop()
        let record = world.apns.record
        #expect(world.disorder(of: devices, record).isEmpty)
        #expect(record.violations.isEmpty, "\(record.violations)")
        #expect(Set(record.devices.keys) == Set(devices.map(\.address)))
    }

    // MARK: Another APNs

    private static let hasDouble =
        (try? GatewayProcess.run(
            ["python3", "-c", "import h2, cryptography"], program: "/usr/bin/env"
        ).exit) == .status(0)

    @Test(.enabled(if: hasDouble, "python3 with h2 and cryptography is not installed"))
    func `a double of APNs that follows Apple's documents finds nothing`() async throws {
        let clock = HeldClock()
        let world = try ActivityFixture([(Self.good, "/good")], clock: clock, usesDouble: true)
        let double = try #require(world.double)
        let channel = ActivityDevice(
            Self.good, "match", hero: Self.heroes[0], sort: .channel, address: "bWF0Y2g=")
        let devices = Self.phones + Self.crowd + [channel]
        try world.register(devices + Self.starters(Self.good, 2))
        for hour in 0..<6 {
            clock.advance(to: clock.now + 3_600_000)
            try world.change(
                Self.heroes + ["match"], of: Self.good,
                urgency: [Urgency.low, .normal, .high][hour % 3],
                ending: hour == 4 ? Self.heroes.last : nil)
            try world.start("start-\(hour)", of: Self.good, hero: "start")
            _ = try await world.settle(devices)
        }
        try await world.stop()
        double.program.signal(SIGTERM)
        let exit = double.program.waitForExit()
        let report = try String(contentsOfFile: double.report, encoding: .utf8)
        #expect(exit == .status(0), "\(report) \(double.program.standardErrorTail)")
        let counts = try #require(try double.program.json(line: 1))
        let accepted = ["update", "end", "start"].map { "accepted liveactivity \($0)" }
        for name in accepted + ["accepted broadcast update"] {
            #expect(counts[name]?.integerValue ?? 0 > 0, "\(name): \(counts)")
        }
    }
}
