import APNsSimulator
import GatewayStorage
import GatewayTestSupport
import WidgetModel

@testable import GatewayCore
@testable import GatewayEngine

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
