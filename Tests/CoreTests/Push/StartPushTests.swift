import Testing
import WidgetModel

@testable import GatewayCore

/// Pushes that start Live Activities.
@Suite struct StartPushTests {
    private let key = ClientKey(app: "app", client: "device")

    /// Returns a client with a push-to-start token.
    private static func client(
        _ name: String = "device", account: String = "42", type: String = "A",
        token: String = "bb", activities: [RegisteredActivity] = []
    ) -> ClientRecord {
        device(
            [], named: name, delivery: [.stream], activities: activities,
            starts: [ActivityStartAddress(type: type, delivery: apns(token, "liveactivity"))],
            attributes: ["account": ["7", account]])
    }

    private static func ids(_ orders: [DuePush]) -> [String?] { orders.map { $0.activity?.id } }

    private static func token(_ order: DuePush) -> String? { order.address.apns?.token }

    // MARK: Who, and what

    @Test func `a start is pushed once to each client that it names`() throws {
        var small = try SmallPushScheduler(
            Self.client(), Self.client("other", account: "43", token: "cc"),
            Self.client("typed", type: "B", token: "dd"), device(named: "none"))
        try small.start("one", urgency: .low)
        let order = try #require(small.orders().first)
        #expect(order.client == key && order.sorts == [.start(type: "A")])
        #expect(Self.token(order) == "bb")
        let activity = try #require(order.activity)
        #expect(activity.id == "one" && activity.type == "A" && activity.priority == 10)
        #expect(activity.attributes == ["a": .single("1")])
        let start = try #require(activity.start)
        #expect(start.start.alert == ["title": "t"] && start.expiresAt == 900_007)
        #expect(order.content.sequence == 2 && order.position == 2)
        try small.finish(order)
        small.expectSilence()
        #expect(small.scheduler.statusCounts(now: small.now).told == 0)
    }

    @Test func `a start on many devices is spread over time, but not where it is urgent`() throws {
        var terms = PushScheduler.Terms()
        terms.spread = PushSpread.Terms(devicesPerSecond: 1)
        for (urgency, isSpread) in [(.normal, true), (.high, false)] as [(Urgency, Bool)] {
            var small = try SmallPushScheduler(terms: terms)
            for number in 10..<14 {
                small.register(Self.client("\(number)", token: "\(number)"))
            }
            try small.start("one", urgency: urgency)
            let count = small.orders().count
            #expect((count < 4) == isSpread)
            small.wait(4_000)
            #expect(small.scheduler.pushesUnderWay == 4)
        }
    }

    @Test func `no start is spread over more than half of the time in which it may be pushed`()
        throws
    {
        var small = try SmallPushScheduler { $0.spread = PushSpread.Terms(devicesPerSecond: 1) }
        for number in 10..<14 {
            small.register(Self.client("\(number)", token: "\(number)"))
        }
        try small.start("one", ttl: 1)
        small.wait(500)
        #expect(small.scheduler.pushesUnderWay == 4)
    }

    @Test func `starts go out one after another, and one that is refused is not tried again`()
        throws
    {
        var small = try SmallPushScheduler(Self.client())
        for id in ["one", "two", "three"] { try small.start(id) }
        var order = try #require(small.orders().first)
        #expect(order.activity?.id == "one")
        #expect(small.scheduler.stamp(order, wall: 100) == 100)
        try small.finish(order)
        order = try #require(small.orders().first)
        #expect(order.activity?.id == "two" && order.position == 3)
        #expect(small.scheduler.stamp(order, wall: 100) == 101)
        try small.finish(order, .giveUp)
        #expect(Self.ids(small.orders()) == ["three"])
    }

    @Test func `a start without content makes way for the next one, once its source had time`()
        throws
    {
        for failure in [ContentFailure.status, .timedOut] {
            var small = try SmallPushScheduler(Self.client())
            try small.start("one")
            try small.start("two")
            for _ in 0..<8 {
                let order = try #require(small.orders().first)
                #expect(order.activity?.id == "one")
                try small.finish(order, result: .content(.failed(failure)))
                small.wait(300_000)
            }
            // What has no content when its source is away has some later.
            #expect(Self.ids(small.orders()) == [failure == .status ? "two" : "one"])
        }
    }

    @Test func `whom a start names is judged when it is pushed`() throws {
        var small = try SmallPushScheduler(Self.client())
        try small.start("one")
        // Also once its content has arrived: the device may be another person's by then.
        let order = try #require(small.orders().first)
        small.register(Self.client(account: "43"))
        let isWanted = small.scheduler.contentArrived(order.number, now: small.now)
        #expect(!isWanted)
        try small.finish(order, result: .notSent)
        small.expectSilence(60_000)
        try small.start("two")
        try small.start("three", account: "43")
        #expect(Self.ids(small.orders()) == ["three"])
    }

    @Test func `nothing is started of a type that the catalog does not declare`() throws {
        var small = try SmallPushScheduler(Self.client(type: "C"))
        try small.start("one", type: "C")
        #expect(small.orders().isEmpty)
        try small.put()
        small.expectSilence()
    }

    @Test func `a client that goes leaves nothing behind`() throws {
        var small = try SmallPushScheduler(Self.client(), Self.client("other", token: "cc"))
        small.scheduler.removed(key)
        try small.start("one")
        #expect(small.orders().map(\.client.client) == ["other"])
        small.head += 1
        small.apply(.removal)
        #expect(small.scheduler.startHolders.isEmpty)
        #expect(small.scheduler.starts.count(of: "app", wall: 0) == 0)
    }

    // MARK: What confirms it

    @Test func `no stream, cursor or poll delays or confirms a start`() throws {
        var small = try SmallPushScheduler(Self.client())
        small.scheduler.streamOpened(key, resuming: small.head, now: small.now)
        try small.start("one")
        let order = try #require(small.orders().first)
        small.scheduler.polled(key, now: small.now)
        small.acknowledge()
        small.scheduler.streamEnded(key, now: small.now)
        try small.finish(order, .retry(.atOnce))
        #expect(Self.ids(small.orders()) == ["one"])
        #expect(small.scheduler.acknowledged(key) == 0)
        // Restored, and the client has seen everything.
        try small.restart([Self.client()], heard: .init(confirmed: 2, isStreaming: true))
        #expect(Self.ids(small.orders()) == ["one"])
    }

    @Test func `no start of before the registration of its token is pushed to it`() throws {
        let stream = device([], delivery: [.stream], attributes: ["account": ["42"]])
        for earlier in [stream, device(attributes: ["account": ["42"]])] {
            var small = try SmallPushScheduler(earlier)
            try small.start("one")
            small.register(Self.client())
            #expect(small.orders().isEmpty)
        }
    }

    @Test func `over a restart a start is pushed at least once, and not after it was accepted`()
        throws
    {
        let record = Self.client()
        var small = try SmallPushScheduler(record)
        try small.start("one")
        #expect(Self.ids(small.orders()) == ["one"])
        small.save()
        try small.restart([record])
        let again = try #require(small.orders().first)
        #expect(again.activity?.id == "one")
        try small.finish(again)
        small.save()
        try small.restart([record])
        #expect(small.orders().isEmpty)
        // The gateway is killed before it has stored that anything is owed.
        try small.start("two")
        #expect(Self.ids(small.orders()) == ["two"])
        try small.restart([record])
        #expect(Self.ids(small.orders()) == ["two"])
    }

    @Test func `an accepted start is not pushed to the next token, one that waits is`() throws {
        var small = try SmallPushScheduler(Self.client())
        try small.start("one")
        try small.finish(small.orders().first)
        small.register(Self.client(token: "cc"))
        #expect(small.orders().isEmpty)
        try small.start("two")
        #expect(small.orders().map(Self.token) == ["cc"])
        small.register(Self.client(token: "dd"))
        let order = try #require(small.orders().first)
        #expect(Self.token(order) == "dd" && order.activity?.id == "two")
    }

    @Test func `a start that finds a dead token is pushed to the next one`() throws {
        let without = device([], delivery: [.stream], attributes: ["account": ["42"]])
        for isRestarted in [false, true] {
            var small = try SmallPushScheduler(Self.client())
            try small.start("one")
            try small.finish(small.orders().first, .dropAddress)
            small.register(without)
            if isRestarted {
                small.save()
                try small.restart([without])
            }
            // It has no token, and counts for none of these.
            #expect(small.scheduler.startHolders.isEmpty)
            small.register(Self.client(token: "cc"))
            let order = try #require(small.orders().first)
            #expect(Self.token(order) == "cc" && order.activity?.id == "one")
            try small.finish(order)
            small.scheduler.registered(without, app: "app", now: small.now, wall: .max)
            #expect(small.scheduler.clients[key]?.slots.isEmpty ?? false)
        }
    }

    @Test func `after the loss of a log tail nothing is started again`() throws {
        var small = try SmallPushScheduler(Self.client())
        try small.start("one")
        let order = try #require(small.orders().first)
        small.scheduler.forgetPositions(now: small.now)
        try small.finish(order)
        small.expectSilence()
        try small.start("two")
        #expect(Self.ids(small.orders()) == ["two"])
    }

    // MARK: The activity that it began

    private static let own = RegisteredActivity(
        type: "A", id: "own", attributes: ["a": .single("1")],
        delivery: apns("aa", "liveactivity"))

    @Test func `a change between a start and the registration of its token is not missed`() throws {
        for (isStarted, changed) in [(true, true), (true, false), (false, true)] {
            var small = try SmallPushScheduler(Self.client())
            // Nothing of before the start.
            try small.change("1")
            if isStarted {
                try small.start("one")
                let order = try #require(small.orders().first)
                _ = small.scheduler.stamp(order, wall: 1)
                try small.finish(order)
                // Another start, for a device that registers the first activity late.
                try small.change(changed ? "1" : "2")
                try small.start("two")
                let next = try #require(small.orders().first)
                _ = small.scheduler.stamp(next, wall: 1)
                try small.finish(next)
            } else {
                try small.change("1")
            }
            small.register(Self.client(activities: [Self.own]))
            let expected: [[PushCategory]] =
                isStarted && changed ? [[.activity(id: "own")]] : []
            #expect(small.orders().map(\.sorts) == expected)
        }
    }

    @Test func `an activity that is registered late misses no change since its start`() throws {
        var small = try SmallPushScheduler(Self.client())
        func begin(_ id: String, at seconds: Int64) throws {
            let order = try #require(small.orders().first)
            #expect(order.activity?.id == id)
            _ = small.scheduler.stamp(order, wall: seconds)
            try small.finish(order)
        }
        try small.start("one", ttl: 1)
        try begin("one", at: 1)
        try small.change("1")
        // The first one has expired by now, but a device may get it hours later.
        try small.start("two", acceptedAt: 2_000)
        try begin("two", at: 2)
        small.save()
        for isRestarted in [false, true] {
            if isRestarted { try small.restart([Self.client()]) }
            // 16 hours, and those that a restart adds to the timestamp.
            let last: Int64 = 57_602 + (isRestarted ? 60 : 0)
            for (seconds, count) in [(last, 1), (last + 1, 0)] {
                var later = small
                later.scheduler.registered(
                    Self.client(activities: [Self.own]), app: "app", now: later.now,
                    wall: seconds * 1_000)
                #expect(later.orders().count == count)
            }
        }
    }

    @Test func `an update of an activity is later than its start, whatever the clock`() throws {
        var small = try SmallPushScheduler(Self.client())
        try small.start("one")
        let order = try #require(small.orders().first)
        let began = small.scheduler.stamp(order, wall: 4_000)
        try small.finish(order)
        small.register(Self.client(activities: [Self.own]))
        let update = try small.order(changing: "1")
        #expect(small.scheduler.stamp(update, wall: 400) > began)
    }

    // MARK: Budgets and sources

    @Test func `an expired start is settled, costs nothing and says nothing of its source`()
        throws
    {
        var small = try SmallPushScheduler(Self.client())
        try small.start("one")
        let order = try #require(small.orders().first)
        try small.finish(order, result: .content(.failed(.timedOut)))
        let address = small.scheduler.addresses(of: key, now: small.now).first
        #expect(address?.failing?.type == "A" && address?.failing?.failure == .timedOut)
        small.wait(1_000)
        let again = try #require(small.orders().first)
        try small.finish(again, result: .content(.expired))
        #expect(small.scheduler.sources.values.map(\.failures) == [1])
        #expect(small.scheduler.queue.questionsUnderWay == 0)
        small.expectSilence()
        #expect(small.scheduler.addresses(of: key, now: small.now).first?.savings?.left == 10)
        try small.start("two")
        #expect(Self.ids(small.orders()) == ["two"])
    }

    // MARK: What is kept

    @Test func `the log's starts are kept until they expire, a bounded number of them`() throws {
        var starts = RecentStarts()
        func apply(_ sequence: UInt64, ttl: Int64, at moment: Int64) throws {
            let start = try ActivityStart(
                [
                    "id": "1", "type": "A", "attribute": "a:b", "alert": [:],
                    "ttl": .integer(ttl),
                ], limits: Limits())
            starts.apply(
                LogEntry(sequence: sequence, app: "app", acceptedAt: moment, body: .start(start)))
        }
        try apply(1, ttl: 1, at: 0)
        try apply(2, ttl: 2, at: 0)
        #expect(starts.count(of: "app", wall: 999) == 2)
        #expect(starts.count(of: "app", wall: 1_000) == 1)
        // Those that are over go when another comes.
        try apply(3, ttl: 60, at: 1_000)
        #expect(starts.count(of: "app", wall: 0) == 2)
        try apply(4, ttl: 60, at: 4_000)
        #expect(starts.count(of: "app", wall: 0) == 2)
        for sequence in 5...3_000 as ClosedRange<UInt64> {
            try apply(sequence, ttl: 60, at: 4_000)
        }
        #expect(starts.count(of: "app", wall: 0) == 2 * RecentStarts.countMax)
        func owed(after sequence: UInt64, _ attributes: [String: [String]]) -> [UInt64] {
            starts.starts(of: "app", type: "A", after: sequence, for: attributes).map(\.sequence)
        }
        #expect(owed(after: 2_998, ["a": ["c", "b"], "b": ["a"]]) == [2_999, 3_000])
        #expect(owed(after: 0, ["a": ["b"]]).count == 2 * RecentStarts.countMax)
        #expect(owed(after: 0, ["b": ["b"]]).isEmpty)
    }
}
