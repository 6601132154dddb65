import APNsSimulator
import Foundation
import GatewayCore
import GatewayDelivery
import GatewayServer
import GatewaySigning
import GatewayStorage
import GatewayTLS
import GatewayTestSupport
import NIOCore
import NIOPosix
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayOperations

/// A device with one app.
struct StormDevice {
    let key: ClientKey
    let faults: StormFaults
    /// The characters that its widgets show.
    let characters: [String]
    /// Its push tokens, the newest last.
    var tokens: [String] = []
    /// Whether the device polls now and then, or acknowledges.
    let answers: Bool
    /// Whether its tokens belong to APNs' sandbox although they are registered for production.
    let isStray: Bool
}

/// The push code of a gateway, from the log to APNs, and an APNs with faults.
final class StormFixture: Sendable {
    static let team = "TEAM123456"

    let clock = HeldClock()
    let server: APNsServer
    /// APNs' other environment, where the first app has its key as well.
    let sandbox: APNsServer
    let ledger: StormLedger
    let engine: Engine
    let store: SQLiteStore
    let push: PushLoop
    /// The number of requests that APNs decided about.
    let requests = Counter()
    /// The clients whose address was removed from their registration.
    let dropped = Mutexed<[ClientKey]>([])
    /// The shortest step of the clock, in milliseconds.
    private static let step: Int64 = 30_000
    /// The step while pushes wait for a connection, because only one may be opened in a second.
    private static let shortStep: Int64 = 5_000
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    /// A world for these apps, without devices.
    init(apps: [String]) throws {
        let data = try GatewayProcess.temporaryDirectory()
        let made = try DevelopmentCertificates.ensure(
            in: data, now: Int64(Date().timeIntervalSince1970))
        var terms = SimulatedAPNs.Terms()
        terms.environment = .production
        // A stricter limit than APNs', which allows an hour.
        terms.providerTokenAgeMax = 3_300 + 120
        var push = PushConfiguration()
        for (number, app) in apps.enumerated() {
            let key = try SigningKey(generating: .es256)
            let id = "KEY" + String(1_000_000 + number)
            let file = "\(data)/\(id).p8"
            try key.save(to: file)
            terms.keys.append(try ProviderKey(id: id, team: Self.team, key: key.publicKey))
            push.apps.append(
                .init(
                    place: number, app: app, credential: .key(team: Self.team, id: id, file: file),
                    environments: number == 0 ? [.production, .sandbox] : [.production],
                    forms: [.widgets: try APNsPushForm(.widgets, app: app)]))
        }
        let (clock, requests) = (clock, requests)
        let ledger = StormLedger(clock)
        self.ledger = ledger
        var settings = APNsServer.Settings(
            certificate: .file(made.certificate), key: .file(made.key))
        settings.clock = { SimulatedAPNs.Moment(now: clock.now, wall: clock.wall) }
        settings.onDecision = { decision, _ in
            requests.increment()
            ledger.looked(decision)
        }
        server = try APNsServer(terms, settings)
        terms.environment = .sandbox
        sandbox = try APNsServer(terms, settings)
        push.hosts[.production] = Address(host: "127.0.0.1", port: server.port)
        push.hosts[.sandbox] = Address(host: "127.0.0.1", port: sandbox.port)
        push.trust = made.ca
        push.terms.apnsApps = Set(apps)
        var configuration = try GatewayOperations.GatewayConfiguration.test(data: data)
        configuration.push = push
        let store = try SQLiteStore(directory: data + "/store")
        self.store = store
        engine = try Engine.test(
            configuration, store: store, clock: clock.gateway, pushLoop: group.next())
        self.push = try #require(engine.push)
        ledger.use(
            APNsSender(push, try PushFiles(push)) {
                .stored(in: store, issuer: $0)
            } adjust: {
                $0.clock = clock.gateway
                $0.deadline = .seconds(1)
                $0.windowMax = 100
            })
    }

    /// Puts the catalogs and begins to push.
    func start(apps: [String]) async throws {
        for app in apps {
            let body = """
                app: \(app)
                entities: { Character: { properties: [health] } }
                intents: { One: { parameters: [{ name: character, type: Character }] } }
                widgets:
                  - kind: detail
                    configuration: appIntent
                    intent: One
                    families: [systemSmall]
                    dependsOn: [{ entity: Character, match: { id: $character } }]
                """
            try await engine.putCatalog(body, app: app)
        }
        push.start(
            PushLoop.Dependencies(
                store: store,
                drop: { [clients = engine.clients, dropped] key, address in
                    try await clients.drop(address, of: key)
                    dropped.withLock { $0.append(key) }
                },
                sender: { [ledger] _, _ in ledger }, acceptTime: { _ in nil }))
    }

    /// Registers devices, each with its newest token.
    func register(_ devices: some Collection<StormDevice>) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (place, device) in devices.enumerated() {
                if place >= 200 { try await group.next() }
                let document = registration(
                    showing: device.characters,
                    delivery: addresses(pushToken: device.tokens.last ?? ""))
                let key = device.key
                group.addTask { [clients = engine.clients] in
                    _ = try await clients.register(key, .document(document), by: .backend)
                }
            }
            try await group.waitForAll()
        }
    }

    /// Posts a change of each character of each app; a character of `nil` stands for all of them.
    func post(_ characters: [String?], apps: [String], urgency: Urgency, run: Int) async throws {
        let events = characters.enumerated().map { place, character in
            CloudEvent(
                source: "storm-\(run)", id: String(place),
                change: Change(entity: "Character", id: character, urgency: urgency))
        }
        for app in apps { _ = try await engine.changes.post(events, app: app) }
    }

    // MARK: Time

    /// Advances the clock as fast as pushes follow: it stands still while anything happens, and
    /// advances slowly while pushes wait for a connection.
    ///
    /// - Parameter holds: Returns whether to continue.
    func pass(_ milliseconds: Int64, while holds: () async throws -> Bool = { true }) async throws {
        let end = clock.now + milliseconds
        while clock.now < end {
            try await settle()
            guard try await holds() else { return }
            let now = clock.now
            let isBusy = ledger.activity.isBusy
            let next = isBusy ? now : clock.nextWaking ?? end
            clock.advance(to: min(end, max(next, now + (isBusy ? Self.shortStep : Self.step))))
        }
        try await settle()
    }

    /// Waits until nothing happens any more, except that pushes without an answer stay in flight.
    private func settle() async throws {
        var calm = 0
        var seen = 0
        while calm < (ledger.activity.isBusy ? 6 : 2) {
            try await Task.sleep(for: .milliseconds(1))
            let (isUnderWay, isDue) = try await push.ask { scheduler, now in
                (scheduler.pushesUnderWay > 0, scheduler.nextDue.map { $0 <= now } ?? false)
            }
            let changes = ledger.activity.changes
            // If no timer is set, pushes in flight will end without one.
            let isIdle =
                try await push.isCaughtUp() && !isDue
                && !(isUnderWay && clock.nextWaking == nil)
            calm = changes == seen && isIdle ? calm + 1 : 0
            seen = changes
        }
    }

    /// Ends everything that runs; the store stays open.
    func stop() async throws {
        await push.stop { await ledger.drain() }
        clock.end()
        await server.stop()
        await sandbox.stop()
    }

    /// Closes the store and the event loops.
    func close() async throws {
        try await store.close()
        try await group.shutdownGracefully()
    }
}
