import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct PushSchedulerTests {
    private let key = ClientKey(app: "app", client: "device")

    @Test func `a change is pushed to those that depend on it and to nobody else`() throws {
        var small = try SmallPushScheduler(device())
        small.register(device(["2"], named: "other", delivery: [apns("bb")]))
        #expect(small.orders().isEmpty)
        try small.change("1")
        let orders = small.orders()
        #expect(orders.map(\.client) == [key])
        #expect(orders.map { words($0.content) } == ["k(a=1)"])
        #expect(orders.first?.position == 2 && orders.first?.environment == .production)
        try small.finish(orders.first)
        small.expectSilence()
    }

    @Test func `a client without an address at APNs or a webhook is none of the scheduler's`()
        throws
    {
        var small = try SmallPushScheduler(device(delivery: [.stream]))
        try small.change("1")
        #expect(small.orders().isEmpty)
        #expect(small.scheduler.clients.isEmpty && small.scheduler.changed.isEmpty)
    }

    @Test func `changes while a push is under way make one more`() throws {
        var small = try SmallPushScheduler(device(["1", "2"])) { $0.interval = 0 }
        try small.change("1")
        let first = small.orders()
        try small.change("2")
        try small.change("1")
        #expect(small.orders().isEmpty)
        try small.finish(first.first)
        let second = small.orders()
        #expect(second.map { words($0.content) } == ["k(a=1), k(a=2)"])
        #expect(second.first?.position == 4)
    }

    @Test func `what is acknowledged before its push is accepted did not need it`() throws {
        var small = try SmallPushScheduler(device())
        let order = try small.order(changing: "1")
        #expect(order.cause == .noStream)
        #expect(small.scheduler.addresses(of: key, now: small.now).map(\.cause) == [.noStream])
        small.scheduler.acknowledged(key, upTo: small.head - 1, now: small.now)
        #expect(!small.scheduler.isAcknowledged(order))
        small.acknowledge()
        #expect(small.scheduler.isAcknowledged(order))
        small.scheduler.removed(key)
        #expect(!small.scheduler.isAcknowledged(order))
    }

    @Test func `what is withheld for one kind rides on another's push`() throws {
        var small = try SmallPushScheduler()
        var record = device()
        record = ClientRecord(
            client: record.client,
            registration: ClientRegistration(
                platform: "iOS", widgets: record.registration.widgets + [widget(kind: "l")],
                delivery: [apns()]), attributes: .init(), since: 1)
        small.register(record)
        try small.push()
        try small.change("1")
        #expect(small.orders().isEmpty)
        try small.change(entity: "F")
        #expect(small.orders().map { words($0.content) } == ["k(a=1), l"])
    }

    @Test func `a dead token is taken out and never pushed to again`() throws {
        var small = try SmallPushScheduler(device())
        try small.push(.dropAddress)
        let actions = small.scheduler.takeActions()
        guard case .drop(key, apns()) = actions.first else {
            Issue.record("\(actions)")
            return
        }
        try small.change("1")
        small.expectSilence()
        // Registered with another token, it is owed the change it missed.
        small.register(device(delivery: [apns("bb")]))
        #expect(small.orders().map(\.address) == [apns("bb")])
    }

    @Test func `a token belongs to the client that registered it last`() throws {
        var small = try SmallPushScheduler(device())
        small.register(device(named: "heir"))
        let actions = small.scheduler.takeActions()
        guard case .drop(key, apns()) = actions.first, actions.count == 1 else {
            Issue.record("\(actions)")
            return
        }
        try small.change("1")
        #expect(small.orders().map(\.client.client) == ["heir"])
        // Removing the first client does not take the token from the second.
        small.scheduler.removed(key)
        small.register(device(named: "third"))
        let drops = small.scheduler.takeActions().compactMap {
            if case .drop(let key, _) = $0 { key.client } else { nil }
        }
        #expect(drops == ["heir"])
    }

    @Test func `a broadcast channel belongs to one client and to its own environment`() throws {
        var small = try SmallPushScheduler()
        func register(_ channel: String, _ name: String) {
            let activity = RegisteredActivity(
                type: "A", id: "1", attributes: ["a": .single("1")],
                delivery: .apns(.init(pushType: "liveactivity", token: "", channel: channel)))
            small.register(device([], named: name, delivery: [.stream], activities: [activity]))
        }
        register("AAAA", "one")
        register("BBBB", "two")
        #expect(small.scheduler.takeActions().isEmpty)
        try small.change("1")
        let orders = small.orders()
        #expect(Set(orders.map(\.client.client)) == ["one", "two"])
        #expect(orders.map(\.mayTryOtherEnvironment) == [false, false])
        register("AAAA", "heir")
        let drops = small.scheduler.takeActions().compactMap {
            if case .drop(let key, _) = $0 { key.client } else { nil }
        }
        #expect(drops == ["one"])
    }

    @Test func `the other environment is tried once, and the one that worked stays`() throws {
        var small = try SmallPushScheduler(device())
        try small.push(.tryOtherEnvironment)
        let second = small.orders()
        #expect(second.map(\.environment) == [.sandbox])
        #expect(second.map(\.mayTryOtherEnvironment) == [false])
        try small.finish(second.first)
        try small.change("1")
        small.wait(300_000)
        #expect(small.orders().map(\.environment) == [.sandbox])
    }

    @Test func `a recommendation set is owed until it is confirmed by name`() throws {
        var small = try SmallPushScheduler()
        let set = RecommendationSet(
            kind: "k", items: [.init(parameters: ["a": .single("1")], description: "one")])
        let record = device(
            delivery: [apns(), apns("aa", "background")], recommendations: [set],
            confirmed: ["k": 1])
        small.register(record)
        let order = try small.order(entity: "F")
        #expect(order.address == apns("aa", "background") && order.sorts == [.recommendations])
        #expect(words(order.content) == "k.recommendations")
        try small.finish(order)
        // The client answers, but not about the set, which is pushed again three times at most.
        var repeats = 0
        for _ in 0..<10 {
            small.acknowledge()
            small.wait(86_400_000)
            for order in small.orders() {
                repeats += 1
                try small.finish(order)
            }
        }
        #expect(repeats <= 3)
        small.scheduler.confirmed(record.with(confirmed: ["k": 2]), app: "app", now: small.now)
        small.expectSilence()
        #expect(small.scheduler.statusCounts(now: small.now).confirmed == 2)
    }

    @Test func `each control is pushed to by its own token, and only if it is stale`() throws {
        var small = try SmallPushScheduler()
        let controls = ["1", "2"].map { id in
            PlacedControl(
                kind: "c", id: "control-\(id)", parameters: ["a": .single(id)],
                delivery: apns("c\(id)", "controls"))
        }
        small.register(device([], delivery: [.stream], controls: controls))
        try small.change("2")
        let orders = small.orders()
        #expect(orders.map(\.address) == [apns("c2", "controls")])
        #expect(orders.map(\.sorts) == [[.control(id: "control-2")]])
    }

    @Test func `a webhook is told everything in one push, again and again until it takes it`()
        throws
    {
        var small = try SmallPushScheduler(
            device(["1", "2"], delivery: [.webhook(url: "https://hook.example")]))
        let first = try small.order(changing: "1")
        #expect(first.sorts == [.timelines])
        try small.finish(first, .status(500))
        small.wait(5_000)
        let second = try #require(small.orders().first)
        #expect(second.message == first.message)
        try small.finish(second, .none)
        try small.change("2")
        small.wait(300_000)
        // The content has changed, so it is another message.
        let third = try #require(small.orders().first)
        #expect(third.message != first.message && words(third.content) == "k(a=1), k(a=2)")
        try small.finish(third, .status(204))
        small.expectSilence()
    }

    @Test func `a webhook that is gone is not asked until it is registered again`() throws {
        let hook = DeliveryAddress.webhook(url: "https://hook.example")
        var small = try SmallPushScheduler(device(delivery: [hook]))
        let order = try small.order(changing: "1")
        try small.finish(order, .status(410))
        guard case .disabled(key, hook, .gone) = small.scheduler.takeActions().first else {
            Issue.record("not disabled")
            return
        }
        try small.change("1")
        small.expectSilence()
        small.register(device(delivery: [hook], addressedAt: 5))
        #expect(small.orders().count == 1)
    }

    @Test func `a change for many is spread, and an urgent one is not`() throws {
        var small = try SmallPushScheduler {
            $0.spread = .init(devicesPerSecond: 1, window: 60_000, windowOfNormal: 60_000)
        }
        for index in 0..<40 {
            small.register(device(named: "d\(index)", delivery: [apns("a\(index)")]))
        }
        try small.change("1")
        var made = small.orders()
        #expect(made.count < 10)
        var perSecond: [Int] = []
        for _ in 0..<60 {
            small.wait(1_000)
            let orders = small.orders()
            perSecond.append(orders.count)
            made += orders
        }
        #expect(made.count == 40)
        #expect(perSecond.max() ?? 0 < 10)
        for order in made { try small.finish(order) }
        small.wait(300_000)
        try small.change("1", urgency: .high)
        #expect(small.orders().count == 40)
    }

    @Test func `a new catalog, an operator's reload and a lost tail reach devices too`() throws {
        var small = try SmallPushScheduler(device())
        small.head += 1
        small.apply(.reload(.kind("k")))
        #expect(small.orders().map { words($0.content) } == ["k"])
        small.head += 1
        small.apply(.reload(.client("nobody")))
        #expect(small.orders().isEmpty)
        small.scheduler = try Self.fresh(&small)
        small.scheduler.forgetPositions(now: small.now)
        #expect(small.orders().map { words($0.content) } == ["all"])
    }

    @Test func `a client that is released is stored no more, and pushed to no more`() throws {
        var small = try SmallPushScheduler(device())
        small.scheduler.streamOpened(key, resuming: 1, now: small.now)
        try small.change("1")
        #expect(small.scheduler.keys == [key])
        small.scheduler.release(key)
        #expect(small.scheduler.keys.isEmpty)
        let changed = small.scheduler.takeChanged(limit: 9, now: small.now, wall: 0)
        #expect(changed.isEmpty)
        small.expectSilence()
    }

    private static func fresh(_ small: inout SmallPushScheduler) throws -> PushScheduler {
        let next = try SmallPushScheduler(device())
        small.decider = next.decider
        small.head = next.head
        return next.scheduler
    }
}
