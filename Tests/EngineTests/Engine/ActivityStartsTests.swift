import GatewayDelivery
import GatewayDocuments
import GatewayOperations
import GatewayStorage
import GatewayTestSupport
import NIOCore
import Synchronization
import Testing
import WidgetModel

@testable import GatewayCore
@testable import GatewayEngine

/// Requests to start Live Activities, and the broadcast channels that they name.
@Suite struct ActivityStartsTests {
    /// An APNs that creates channels.
    private final class APNs: Sendable {
        private struct State {
            var environments = ["production", "sandbox"]
            var failing: Set<String> = []
            var created = 0
            var ids: Set<String> = []
        }

        private let state = Mutex(State())

        /// The channels that exist.
        var ids: Set<String> { state.withLock { $0.ids } }

        func fail(in environments: Set<String>) { state.withLock { $0.failing = environments } }

        func configure(_ environments: [String]) {
            state.withLock { $0.environments = environments }
        }

        func channels(of app: String) -> [String: ActivityStarts.Channels] {
            let pairs = state.withLock { $0.environments }.map { environment in
                (
                    environment,
                    ActivityStarts.Channels(
                        create: { [self] in
                            try requireAnswer(in: environment)
                            return state.withLock { state in
                                state.created += 1
                                let text = "\(environment) \(state.created)"
                                let id = Base64.standard.string(Array(text.utf8))
                                state.ids.insert(id)
                                return id
                            }
                        },
                        delete: { [self] id in
                            try requireAnswer(in: environment)
                            state.withLock { _ = $0.ids.remove(id) }
                        })
                )
            }
            return Dictionary(uniqueKeysWithValues: pairs)
        }

        private func requireAnswer(in environment: String) throws {
            let isFailing = state.withLock { $0.failing.contains(environment) }
            if isFailing { throw APNsChannels.Failure(reason: "Shutdown") }
        }
    }

    private static let app = StreamFixture.app

    private let clock = HeldClock()
    private let apns = APNs()
    private let pushes = RecordingSender(endsActivities: true)

    private func fixture(
        clientsMax: Int = .max,
        _ body: (StreamFixture, ActivityStarts, PushLoop) async throws -> Void
    ) async throws {
        let fixture = try StreamFixture(clock: clock.gateway, pushes: true) {
            $0.quota.clientsMax = clientsMax
        }
        let push = try fixture.startPushes(pushes)
        try await fixture.putCatalog(StreamFixture.battles)
        let starts = ActivityStarts(fixture.engine) { [apns] in apns.channels(of: $0) }
        try await body(fixture, starts, push)
        await push.stop {}
        clock.end()
        try await fixture.stop()
    }

    private static func start(_ changes: JSONObject = [:]) throws -> ActivityStart {
        let document: JSONValue = [
            "id": "one", "type": "Battle", "attribute": "account:42",
            "attributes": ["hero": "panda", "place": ["x": 1]], "alert": ["title": "t"],
        ]
        return try ActivityStart(document.merging(patch: .object(changes)), limits: Limits())
    }

    /// Returns a start on a channel alone.
    private static func broadcast(_ id: String = "one") throws -> ActivityStart {
        try start(["id": .string(id), "attribute": nil, "alert": nil, "channel": "match-7"])
    }

    private static func register(_ client: String, in fixture: StreamFixture) async throws {
        let delivery: JSONValue = [
            "type": "apns", "pushType": "liveactivity", "token": "aabb",
        ]
        _ = try await fixture.engine.clients.register(
            StreamFixture.key(client),
            .document([
                "platform": "iOS", "attributes": ["account": "42"],
                "activityStarts": [["type": "Battle", "delivery": delivery]],
            ]), by: .backend)
    }

    /// Waits until nothing is left to be pushed of the log up to an entry.
    private func settle(_ push: PushLoop, _ sequence: UInt64) async throws {
        while push.position ?? 0 < sequence { await Task.yield() }
        while try await push.ask({ scheduler, _ in scheduler.pushesUnderWay }) > 0 {
            await Task.yield()
        }
    }

    private func code(_ body: () async throws -> Void) async -> String? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? EngineError)?.code
        }
    }

    // MARK: Starts

    @Test(.timeLimit(.minutes(30)))
    func `a start counts once, and what differs under its id is refused`() async throws {
        try await fixture { fixture, starts, push in
            try await Self.register("phone", in: fixture)
            let taken = try await starts.post(Self.start(), app: Self.app)
            #expect(!taken.duplicate && taken.channels == nil)
            #expect(taken.sequence == fixture.store.head)
            let again = try await starts.post(Self.start(), app: Self.app)
            #expect(again.duplicate && again.sequence == taken.sequence)
            #expect(
                await code {
                    _ = try await starts.post(Self.start(["ttl": 60]), app: Self.app)
                } == "event-id-reused")
            try await settle(push, taken.sequence)
            let sent = pushes.orders
            #expect(sent.map(\.sorts) == [[.start(type: "Battle")]])
            #expect(sent.map { $0.activity?.timestamp } == [clock.wall / 1_000])
        }
    }

    @Test func `a start of no declared type, or of no app, is refused`() async throws {
        try await fixture { fixture, starts, _ in
            let head = fixture.store.head
            #expect(
                await code {
                    _ = try await starts.post(Self.start(["type": "Batle"]), app: Self.app)
                } == "invalid")
            #expect(
                await code { _ = try await starts.post(Self.start(), app: "other") }
                    == "unknown-app")
            #expect(fixture.store.head == head)
        }
    }

    @Test func `an app has a bounded number of starts that may still be pushed`() async throws {
        try await fixture { _, starts, push in
            let (start, wall) = (try Self.start(["id": "two"]), clock.wall)
            let first = try await starts.post(Self.start(), app: Self.app)
            try await push.loop.submit {
                for number in 1...UInt64(RecentStarts.countMax) {
                    push.scheduler.starts.apply(
                        LogEntry(
                            sequence: number, app: Self.app, acceptedAt: wall, body: .start(start)))
                }
            }.get()
            #expect(
                await code { _ = try await starts.post(start, app: Self.app) } == "too-many-starts")
            // A repetition is no further start.
            let again = try await starts.post(Self.start(), app: Self.app)
            #expect(again.duplicate && again.sequence == first.sequence)
            clock.advance(to: clock.now + 900_000)
            #expect(try await !starts.post(start, app: Self.app).duplicate)
        }
    }

    @Test(.timeLimit(.minutes(30)))
    func `a start is there after a restart, and at a gateway that follows`() async throws {
        let pair = try await ReplicaPair(clock: clock.gateway, pushes: true)
        try await pair.leader.putCatalog(StreamFixture.battles)
        let taken = try #require(
            try await pair.leader.engine.log.append(Self.start(), to: Self.app))
        try await pair.follow()
        let push = try #require(pair.replica.engine.push)
        while push.position ?? 0 < taken.sequence { await Task.yield() }
        let wall = clock.wall
        let count = try await push.ask { scheduler, _ in
            scheduler.starts.count(of: Self.app, wall: wall)
        }
        #expect(count == 1)
        let replay = try LogReplay(
            of: pair.replica.store, limits: Limits(), coreLimits: CoreLimits())
        #expect(replay.starts.count(of: Self.app, wall: wall) == 1)
        clock.end()
        try await pair.stop()
    }

    // MARK: Channels

    @Test func `a channel is created in each environment, and is a client from then on`()
        async throws
    {
        try await fixture { fixture, starts, _ in
            let taken = try await starts.post(Self.broadcast(), app: Self.app)
            let made = try #require(taken.channels)
            #expect(made.keys.sorted() == ["production", "sandbox"])
            #expect(apns.ids == Set(made.values))
            let key = StreamFixture.key("match-7")
            let registration = try #require(fixture.engine.registry.record(key)?.registration)
            #expect(registration.platform == "broadcast" && registration.delivery.isEmpty)
            #expect(registration.activities.map(\.id) == ["production", "sandbox"])
            for activity in registration.activities {
                #expect(activity.type == "Battle")
                #expect(activity.attributes == ["hero": .single("panda")])
                #expect(activity.delivery?.apns?.environment == activity.id)
                #expect(activity.delivery?.apns?.channel == made[activity.id])
            }
            // Neither a repeated start nor another one makes channels.
            for (id, duplicate) in [("one", true), ("two", false)] {
                let again = try await starts.post(Self.broadcast(id), app: Self.app)
                #expect(again.duplicate == duplicate && again.channels == made)
            }
            #expect(apns.ids.count == 2)
        }
    }

    @Test func `where a channel cannot be created a repeated start goes on from there`()
        async throws
    {
        try await fixture { fixture, starts, _ in
            let head = fixture.store.head
            apns.fail(in: ["sandbox"])
            #expect(
                await code { _ = try await starts.post(Self.broadcast(), app: Self.app) }
                    == "channel-service")
            let first = apns.ids
            #expect(first.count == 1 && fixture.store.head == head)
            apns.fail(in: [])
            let taken = try await starts.post(Self.broadcast(), app: Self.app)
            #expect(!taken.duplicate && taken.channels?.count == 2)
            #expect(apns.ids.count == 2 && apns.ids.isSuperset(of: first))
        }
    }

    @Test func `a channel that cannot be registered is not left at APNs`() async throws {
        try await fixture(clientsMax: 1) { fixture, starts, _ in
            try await Self.register("phone", in: fixture)
            for _ in 0..<3 {
                #expect(
                    await code { _ = try await starts.post(Self.broadcast(), app: Self.app) }
                        == "too-many-clients")
            }
            #expect(apns.ids.isEmpty)
        }
    }

    @Test func `a channel is not used again before it is known whether it has ended`()
        async throws
    {
        try await fixture { fixture, starts, push in
            _ = try await starts.post(Self.broadcast(), app: Self.app)
            let head = fixture.store.head
            try await push.loop.submit { push.duty = .resting }.get()
            #expect(
                await code { _ = try await starts.post(Self.broadcast("two"), app: Self.app) }
                    == "unavailable")
            #expect(fixture.store.head == head)
            try await push.loop.submit { push.duty = .pushing }.get()
            #expect(try await !starts.post(Self.broadcast("two"), app: Self.app).duplicate)
        }
    }

    @Test(.timeLimit(.minutes(30)))
    func `changes are pushed on a channel, and after an end the next start has others`()
        async throws
    {
        try await fixture { fixture, starts, push in
            let taken = try await starts.post(Self.broadcast(), app: Self.app)
            let before = apns.ids
            try await settle(push, try await fixture.change("Character", "panda"))
            let sent = pushes.orders
            #expect(Set(sent.compactMap { $0.address.apns?.channel }) == before)
            #expect(Set(sent.map { "\($0.environment)" }) == ["production", "sandbox"])
            let again = try await starts.post(Self.broadcast(), app: Self.app)
            #expect(again.duplicate && again.channels == taken.channels)
            #expect(apns.ids == before)
            let next = try await starts.post(Self.broadcast("two"), app: Self.app)
            #expect(next.channels.map { Set($0.values) } == apns.ids)
            #expect(apns.ids.count == 2 && apns.ids.isDisjoint(with: before))
        }
    }

    @Test func `a channel is not a device, and needs an app that APNs knows`() async throws {
        try await fixture { fixture, starts, _ in
            try await Self.register("phone", in: fixture)
            func post(_ channel: String) async -> String? {
                await code {
                    _ = try await starts.post(
                        Self.start(["channel": .string(channel)]), app: Self.app)
                }
            }
            #expect(await post("phone") == "invalid")
            apns.configure([])
            #expect(await post("match-7") == "invalid")
            #expect(apns.ids.isEmpty && fixture.engine.registry.count == 1)
        }
    }

    @Test func `a client is removed after its channels were deleted, or not at all`() async throws {
        try await fixture { fixture, starts, _ in
            _ = try await starts.post(Self.broadcast(), app: Self.app)
            let key = StreamFixture.key("match-7")
            apns.fail(in: ["sandbox"])
            #expect(await code { try await starts.remove(key) } == "channel-service")
            #expect(fixture.engine.registry.record(key) != nil)
            apns.fail(in: [])
            // Of the channels that the next start uses none was deleted.
            let taken = try await starts.post(Self.broadcast("two"), app: Self.app)
            #expect(taken.channels.map { Set($0.values) } == apns.ids && apns.ids.count == 2)
            try await starts.remove(key)
            #expect(apns.ids.isEmpty && fixture.engine.registry.record(key) == nil)
            #expect(await code { try await starts.remove(key) } == "unknown-client")
            // Without a credential nobody can delete them.
            _ = try await starts.post(Self.broadcast("three"), app: Self.app)
            apns.configure([])
            try await starts.remove(key)
        }
    }
}
