import APNsSimulator
import Foundation
import GatewayStorage
import GatewayTestSupport
import Synchronization
import Testing
import WidgetModel

@testable import GatewayCore
@testable import GatewayEngine
@testable import GatewayServer

/// All of the push code, from the log to TLS, under all kinds of faults.
@Suite(.timeLimit(.minutes(30))) struct PushStormTests {
    /// The number of requests to APNs: as many as CI has time for in a debug build. Set
    /// `TIMELINE_STORM_PUSHES` for more, up to 100,000.
    private static let requests: UInt64 =
        ProcessInfo.processInfo.environment["TIMELINE_STORM_PUSHES"].flatMap(UInt64.init) ?? 10_000
    private static let seed =
        ProcessInfo.processInfo.environment["TIMELINE_STORM_SEED"].flatMap(UInt64.init) ?? 1

    /// Returns the last persisted attempt for each of some clients.
    private static func attempts(
        at clients: some Sequence<ClientKey>, _ store: SQLiteStore
    ) async throws -> [ClientKey: PushAttemptRow] {
        var attempts: [ClientKey: PushAttemptRow] = [:]
        for client in clients {
            var query = PushAttemptQuery(app: client.app)
            query.client = client.client
            attempts[client] = try await store.pushAttempts(query, limit: 1).first
        }
        return attempts
    }

    @Test func `with 5 % of every fault each device is told, withheld or dead`() async throws {
        var storm = try Storm(devices: max(300, Int(Self.requests) / 10), seed: Self.seed)
        let world = storm.world
        try await storm.start()
        while world.requests.value < Self.requests {
            try await storm.round()
            try await world.pass(storm.minutes(2...40))
        }
        // Three changes in a row exceed what is left of the budgets.
        for _ in 0..<3 {
            try await storm.post([], urgency: .normal)
            try await world.pass(storm.minutes(6...6))
        }
        let (midway, statusCounts) = try await storm.standings()
        let midwayAt = world.clock.now
        // Everything due is pushed, including repeats after hours.
        try await world.pass(30 * 86_400_000, while: { try await !storm.isOver() })
        let end = try await storm.standings().clients
        let over = try await storm.isOver()
        #expect(over)
        try await world.stop()
        let untold = storm.devices.map(\.key).filter { end[$0] != .told }
        let attempts = try await Self.attempts(at: untold, world.store)
        // Attempts are numbered from 1 across all apps.
        var lastAttempt: Int64 = 0
        for app in storm.apps {
            let last = try await world.store.pushAttempts(PushAttemptQuery(app: app), limit: 1)
            lastAttempt = max(lastAttempt, last.first?.number ?? 0)
        }
        try await world.close()

        var judge = StormJudge(storm)
        judge.judgePushes()
        judge.judgeProviderTokens()
        let counts = judge.judgeDevices(end, attempts)
        #expect(judge.faults.isEmpty, "\(judge.faults)")
        #expect(counts.values.reduce(0, +) == storm.devices.count, "\(counts)")
        // A withheld push was due once its budget had refilled: one push in 36 minutes, with some
        // of them reserved for urgent changes.
        let dues = midway.values.compactMap { standing -> Int64? in
            if case .withheld(let until) = standing, until < .max { until } else { nil }
        }
        #expect(!dues.isEmpty && dues.allSatisfy { $0 > midwayAt && $0 <= midwayAt + 10_800_000 })
        let sum =
            statusCounts.confirmed + statusCounts.told + statusCounts.underWay
            + statusCounts.withheld + statusCounts.waiting
            + statusCounts.refused + statusCounts.unreachable
        #expect(sum == midway.count, "\(statusCounts)")
        // An attempt is persisted for every push.
        let made = judge.pushes.values.reduce(0) { $0 + $1.count }
        #expect(lastAttempt == Int64(made))
        // APNs found no violation, and accepted no push twice.
        var violations = judge.record.violations.merging(
            judge.sandbox.violations, uniquingKeysWith: +)
        #expect(violations.removeValue(forKey: .pushedToDead) ?? 0 <= judge.excusedPushes)
        #expect(violations.isEmpty, "\(violations)")
        #expect(judge.record.duplicates + judge.sandbox.duplicates == 0)
        // Devices registered for the wrong environment are notified in their own.
        #expect(storm.devices.contains { $0.isStray && end[$0.key] == .told })
    }
}

/// Devices that receive pushes through hours of changes and faults, all derived from one seed.
struct Storm {
    static let app = "com.storm"
    private static let characters = 40

    let world: StormFixture
    let apps: [String]
    private(set) var devices: [StormDevice] = []
    /// The times of changes, by app and character; those of all characters by app only.
    private(set) var changes: [String: [Int64]] = [:]
    private var random: SplitMix64
    private var tokens = 0
    private var rounds = 0

    /// - Parameters:
    ///   - devices: The number of devices of the app that keeps working. Each app that stops has
    ///     a sixtieth of that number.
    init(devices count: Int, seed: UInt64) throws {
        random = SplitMix64(seed: seed)
        let stopping = StormFaults.stopping.map { (Self.app + "." + $0.rawValue, StormFaults($0)) }
        apps = [Self.app] + stopping.map(\.0)
        world = try StormFixture(apps: apps)
        for (faults, share) in [
            (StormFaults.requests, 28), (.devices, 19), (.connections, 1), (.strays, 2),
        ] {
            for _ in 0..<count * share / 50 { add(Self.app, faults) }
        }
        for (app, faults) in stopping { for _ in 0..<count / 60 { add(app, faults) } }
    }

    private mutating func add(_ app: String, _ faults: StormFaults) {
        let characters = (0...random.below(3)).map { _ in
            "c\(random.below(Self.characters))"
        }
        devices.append(
            StormDevice(
                key: ClientKey(app: app, client: "device-\(devices.count)"), faults: faults,
                characters: characters, answers: random.happens(20),
                isStray: faults.name == StormFaults.strays.name))
        addToken(to: devices.count - 1)
    }

    /// Gives a device another token, and APNs the script for pushes to it.
    private mutating func addToken(to place: Int) {
        tokens += 1
        let digits = String(tokens, radix: 16)
        let token = String(repeating: "0", count: 64 - digits.count) + digits
        devices[place].tokens.append(token)
        let (own, other) =
            devices[place].isStray ? (world.sandbox, world.server) : (world.server, world.sandbox)
        own.script(token, devices[place].faults.script(&random))
        other.script(token, [.refused(.badDeviceToken)])
    }

    /// Registers all devices.
    func start() async throws {
        try await world.start(apps: apps)
        try await world.register(devices)
    }

    // MARK: Events

    /// Changes some characters, now and then all, and lets devices poll, acknowledge and register.
    mutating func round() async throws {
        rounds += 1
        let isBroad = rounds.isMultiple(of: 3)
        let ids = isBroad ? [] : Set((0..<6).map { _ in "c\(random.below(Self.characters))" })
        try await post(ids.sorted(), urgency: random.pick([.normal, .normal, .high, .low]))
        hearOfSome()
        try await registerAgain()
    }

    /// Changes these characters of every app, or all characters if none are given.
    mutating func post(_ ids: [String], urgency: Urgency) async throws {
        for app in apps {
            for id in ids { changes["\(app) \(id)", default: []].append(world.clock.now) }
            if ids.isEmpty { changes[app, default: []].append(world.clock.now) }
        }
        rounds += 1
        try await world.post(
            ids.isEmpty ? [nil] : ids, apps: apps, urgency: urgency, run: rounds)
    }

    /// Lets some of the devices that answer poll, and fewer acknowledge.
    private mutating func hearOfSome() {
        let head = world.store.head
        var events: [PushLoop.Event] = []
        for device in devices where device.answers {
            if random.happens(30) { events.append(.polled(device.key)) }
            if random.happens(5) {
                events.append(
                    .acknowledged(device.key, upTo: head, in: world.engine.cursors.epoch))
            }
        }
        world.push.submit(events)
    }

    /// Gives half of the devices with a dead token another one.
    private mutating func registerAgain() async throws {
        let dropped = world.dropped.withLock { dropped in
            let half = Array(dropped.prefix((dropped.count + 1) / 2))
            dropped.removeFirst(half.count)
            return Set(half)
        }
        let places = devices.indices.filter { dropped.contains(devices[$0].key) }
        for place in places { addToken(to: place) }
        try await world.register(places.map { devices[$0] })
    }

    /// Returns a random number of minutes, in milliseconds.
    mutating func minutes(_ range: ClosedRange<Int>) -> Int64 {
        Int64(range.lowerBound + random.below(range.count)) * 60_000
    }

    // MARK: Status

    /// Returns the times at which a device's content changed, in order.
    func changes(of device: StormDevice) -> [Int64] {
        let app = device.key.app
        let own = Set(device.characters).flatMap { changes["\(app) \($0)"] ?? [] }
        return (own + (changes[app] ?? [])).sorted()
    }

    /// Returns the status of each client with pushes, and the number of clients by status, both of
    /// the same moment: a rejected address may still be removed from its registration.
    func standings() async throws -> (
        clients: [ClientKey: DeliveryAttempts.Status], counts: PushScheduler.StatusCounts
    ) {
        try await world.push.ask { scheduler, now in
            let clients = Dictionary(
                scheduler.standings(now: now).map { ($0.client, $0.standing) },
                uniquingKeysWith: { first, _ in first })
            return (clients, scheduler.statusCounts(now: now))
        }
    }

    /// Returns whether no push is in flight, none will ever be due, and every dead address is out
    /// of its registration.
    func isOver() async throws -> Bool {
        try await world.push.ask { scheduler, now in
            scheduler.pushesUnderWay == 0 && (scheduler.nextDue ?? .max) == .max
                && !scheduler.clients.values.contains {
                    $0.addresses.values.contains(where: \.isDead)
                }
        }
    }
}

/// Records every push between the scheduler and APNs, with its reported result.
final class StormLedger: PushSender {
    struct Push: Sendable {
        let token: String
        let environment: APNsEnvironment
        let began: Int64
        let ended: Int64
        let failures: Int
        let urgency: Urgency
        let verdict: APNsReaction.Verdict
        let reason: String?
    }

    private struct State {
        var pushes: [ClientKey: [Push]] = [:]
        /// The tokens with a push in flight.
        var underWay: Set<String> = []
        /// The tokens among them that APNs does not answer.
        var silent: Set<String> = []
        /// The number of events so far.
        var changes = 0
    }

    private let state = Mutex(State())
    private let sender = Mutex<APNsSender?>(nil)
    private let clock: HeldClock

    init(_ clock: HeldClock) { self.clock = clock }

    /// Sends pushes through `sender` from now on.
    func use(_ sender: APNsSender) { self.sender.withLock { $0 = sender } }

    /// The number of events so far, and whether pushes are in flight that will be answered.
    var activity: (changes: Int, isBusy: Bool) {
        state.withLock { ($0.changes, $0.underWay.count > $0.silent.count) }
    }

    /// The pushes for each client, in the order in which they ended.
    var pushes: [ClientKey: [Push]] { state.withLock { $0.pushes } }

    func send(_ order: DuePush, _ finished: @escaping @Sendable (PushReport) -> Void) {
        let began = clock.now
        let token = order.address.token
        state.withLock {
            $0.changes += 1
            $0.underWay.insert(token)
        }
        sender.withLock { $0 }?.send(order) { [self] report in
            if case .service(let verdict, _, _) = report.result {
                let push = Push(
                    token: token, environment: order.environment, began: began, ended: clock.now,
                    failures: order.failures,
                    urgency: order.urgency, verdict: verdict, reason: report.reason)
                state.withLock { $0.pushes[order.client, default: []].append(push) }
            }
            state.withLock {
                $0.changes += 1
                $0.underWay.remove(token)
                $0.silent.remove(token)
            }
            finished(report)
        }
    }

    /// Records that APNs has decided about a request.
    func looked(_ decision: SimulatedAPNs.Decision) {
        let token = decision.request.deviceToken.map(String.init) ?? ""
        state.withLock {
            $0.changes += 1
            if case .silence = decision.behaviour, $0.underWay.contains(token) {
                $0.silent.insert(token)
            }
        }
    }

    func drain() async { await sender.withLock { $0 }?.drain() }
}

extension DeliveryAddress {
    /// The APNs device token; empty for other addresses.
    fileprivate var token: String {
        if case .apns(let address) = self { address.token } else { "" }
    }
}
