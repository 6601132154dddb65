import CatalogModel
import Testing
import WidgetModel

@testable import GatewayCore

/// Pushes for Live Activities, whose content is asked for when they are due.
@Suite struct ActivityPushTests {
    private static let item = Subscription(place: .activity(0), kind: "A", count: 1)
    private let key = ClientKey(app: "app", client: "device")

    private static func activity(
        _ id: String = "one", type: String = "A", shows item: String = "1", token: String? = "aa"
    ) -> RegisteredActivity {
        RegisteredActivity(
            type: type, id: id, attributes: ["a": .single(item)],
            delivery: token.map { apns($0, "liveactivity") })
    }

    /// Returns a client with nothing but activities.
    private static func client(
        _ activities: [RegisteredActivity], named name: String = "device",
        delivery: [DeliveryAddress] = [.stream]
    ) -> ClientRecord {
        device([], named: name, delivery: delivery, activities: activities)
    }

    /// Returns a scheduler with a client for each of so many activities of a type.
    private static func many(
        _ count: Int, type: String = "A", _ adjust: (inout PushScheduler.Terms) -> Void = { _ in }
    ) throws -> SmallPushScheduler {
        var small = try SmallPushScheduler(adjust: adjust)
        for number in 0..<count { register(number, type: type, in: &small) }
        return small
    }

    private static func register(
        _ number: Int, type: String = "A", in small: inout SmallPushScheduler
    ) {
        let name = "\(type)\(number)"
        small.register(client([activity(type: type, token: name)], named: name))
    }

    private static func fail(
        _ orders: [DuePush], _ failure: ContentFailure = .timedOut, retryAfter: Int64? = nil,
        in small: inout SmallPushScheduler
    ) throws {
        for order in orders {
            try small.finish(order, result: .content(.failed(failure, retryAfter: retryAfter)))
        }
    }

    /// Returns the failures that are reported to people since the last call.
    private static func alerts(of small: inout SmallPushScheduler) -> [String] {
        defer { small.scheduler.actions.removeAll { if case .push = $0 { false } else { true } } }
        return small.scheduler.actions.compactMap {
            if case .sourceFailed(let app, let type, let failure) = $0 {
                "\(app) \(type) \(failure.rawValue)"
            } else {
                nil
            }
        }
    }

    // MARK: One activity

    @Test func `each activity has a push of its own, with what is asked of its source`() throws {
        var small = try SmallPushScheduler()
        let activities = [
            Self.activity("one"), Self.activity("two", token: "bb"),
            Self.activity("other", shows: "2", token: "cc"), Self.activity("told", token: nil),
        ]
        small.register(device(activities: activities))
        try small.change("1")
        let orders = small.orders()
        #expect(orders.count == 3 && orders.allSatisfy { $0.sorts.count == 1 })
        let asked = orders.compactMap(\.activity)
        #expect(asked.map(\.id).sorted() == ["one", "two"])
        #expect(asked.allSatisfy { $0.type == "A" && $0.attributes == ["a": .single("1")] })
        #expect(asked.allSatisfy { $0.source == ContentSource(url: "https://content") })
        #expect(orders.filter { $0.activity == nil }.map(\.sorts) == [[.timelines]])
    }

    @Test func `an activity without a token is told of by the client's webhook, with the rest`()
        throws
    {
        let hook = DeliveryAddress.webhook(url: "https://hook.example")
        var small = try SmallPushScheduler(
            device(delivery: [hook], activities: [Self.activity(token: nil)]))
        let order = try small.order(changing: "1")
        #expect(Set(order.sorts) == [.timelines, .activity(id: "one")] && order.activity == nil)
        #expect(words(order.content) == "k(a=1), A.activity(=one)")
    }

    @Test func `pushes to an activity go out one after another, each later than the last`() throws {
        let record = Self.client([Self.activity()])
        var small = try SmallPushScheduler(record)
        let first = try small.order(changing: "1")
        #expect(small.scheduler.stamp(first, wall: 500) == 500)
        try small.change("1")
        small.scheduler.contentArrived(first.number, now: small.now)
        #expect(small.orders().isEmpty)
        try small.finish(first)
        let second = try #require(small.orders().first)
        // The clock was set back, and then the gateway was killed.
        #expect(small.scheduler.stamp(second, wall: 400) == 501)
        small.save()
        try small.restart([record])
        var again = try #require(small.orders().first)
        #expect(small.scheduler.stamp(again, wall: 400) == 1_060)
        // It is killed once more, before it has stored that.
        small.now += 1_000
        try small.restart([record])
        again = try #require(small.orders().first)
        #expect(small.scheduler.stamp(again, wall: 400) == 1_061)
        #expect(again.content.sequence == 3)
        // Its device does not answer, so nothing is repeated.
        small.scheduler.polled(key, now: small.now)
        try small.finish(again)
        small.expectSilence()
    }

    @Test func `after its end nothing is pushed to an activity`() throws {
        let record = Self.client([Self.activity()])
        var small = try SmallPushScheduler(record)
        let refused = try small.order(changing: "1")
        try small.finish(refused, result: .service(.retry(.atOnce)), ends: true)
        let order = try #require(small.orders().first)
        try small.finish(order, result: .service(.delivered), ends: true)
        small.save()
        try small.restart([record])
        try small.change("1", urgency: .high)
        #expect(small.orders().isEmpty)
        #expect(small.scheduler.addresses(of: key, now: small.now).map(\.absence) == [.ended])
        #expect(small.standing(of: Self.item, record) == .unreachable(.ended))
        #expect(small.scheduler.statusCounts(now: small.now).confirmed == 1)
        let resent = small.scheduler.resend(key, channel: .liveactivity, now: small.now)
        #expect(resent == .nowhere)
    }

    @Test func `no stream, cursor or poll delays or confirms a push to an activity`() throws {
        let record = Self.client([Self.activity()])
        var small = try SmallPushScheduler(record)
        for kinds in [nil, ["A"]] as [Set<String>?] {
            small.scheduler.streamOpened(key, kinds: kinds, resuming: small.head, now: small.now)
        }
        let order = try small.order(changing: "1")
        #expect(order.cause == .noStream)
        small.scheduler.polled(key, now: small.now)
        small.acknowledge()
        small.scheduler.streamEnded(key, now: small.now)
        try small.finish(order, .retry(.atOnce))
        #expect(small.orders().count == 1 && small.scheduler.acknowledged(key) == 0)
        // Nor after a restart, by what was confirmed meanwhile.
        small.save()
        try small.restart([record], heard: .init(confirmed: small.head, isStreaming: true))
        let again = try #require(small.orders().first)
        try small.finish(again)
        #expect(small.scheduler.statusCounts(now: small.now).confirmed == 1)
        #expect(small.standing(of: Self.item, record) == .sent(.liveactivity))
        #expect(Self.item.isPushed(in: record.registration))
        #expect(!Self.item.isPushed(in: Self.client([Self.activity(token: nil)]).registration))
    }

    @Test func `after a fail-over no acknowledgement stands for a push to an activity`() throws {
        var small = try SmallPushScheduler(device())
        small.save()
        // Killed before it has stored this.
        let record = device(activities: [Self.activity()])
        small.register(record)
        try small.change("1")
        try small.restart([record], heard: .init(confirmed: small.head, isStreaming: true))
        #expect(small.orders().map(\.sorts) == [[.activity(id: "one")]])
    }

    @Test func `content that comes when nobody wants the push is not sent`() throws {
        func isWanted(
            _ order: DuePush, after change: (inout SmallPushScheduler) throws -> Void,
            in small: SmallPushScheduler
        ) throws -> Bool {
            var small = small
            try change(&small)
            return small.scheduler.contentArrived(order.number, now: small.now)
        }
        var small = try SmallPushScheduler(Self.client([Self.activity()]))
        _ = small.scheduler.resend(key, channel: .liveactivity, now: small.now)
        try small.change("1")
        let orders = small.orders()
        #expect(orders.map(\.isManual) == [true, false])
        for (order, other) in [(orders[0], orders[1]), (orders[1], orders[0])] {
            #expect(try isWanted(order, after: { _ in }, in: small))
            let changes: [(inout SmallPushScheduler) -> Void] = [
                { $0.scheduler.removed(key) },
                { $0.register(Self.client([])) },
                { $0.register(Self.client([Self.activity()], named: "heir")) },
                {
                    $0.scheduler.finished(
                        other.number, .service(.delivered), ends: true, now: $0.now, random: 0)
                },
            ]
            for change in changes {
                #expect(try !isWanted(order, after: change, in: small))
            }
        }
        // Everything is pushed anew after the loss of a log tail.
        let forgets = { (small: inout SmallPushScheduler) in
            small.scheduler.forgetPositions(now: small.now)
        }
        #expect(try !isWanted(orders[1], after: forgets, in: small))
    }

    @Test func `where a source has nothing to say a change is settled and costs nothing`() throws {
        let record = Self.client([Self.activity()])
        var small = try SmallPushScheduler(record)
        let order = try small.order(changing: "1")
        func left() -> Int? {
            small.scheduler.addresses(of: key, now: small.now).first?.savings?.left
        }
        #expect(left() == 9)
        try small.change("1")
        try small.finish(order, result: .content(.nothing))
        // What came meanwhile is not settled by it.
        let next = try #require(small.orders().first)
        #expect(next.content.sequence == 3)
        try small.finish(next, result: .content(.nothing))
        small.wait(86_400_000)
        #expect(small.orders().isEmpty && left() == 10)
        // Nothing was sent.
        #expect(small.standing(of: Self.item, record) == .confirmed)
        #expect(small.scheduler.statusCounts(now: small.now).told == 0)
    }

    @Test func `priority follows the budget, and what neither allows is withheld`() throws {
        var small = try Self.many(1) { terms in
            terms.budget[.activities] = .init(perDay: 1, burst: 1, reserve: 0)
            terms.budget[.quietActivities] = .init(perDay: 2, burst: 2, reserve: 0)
        }
        var priorities: [Int?] = []
        for urgency in [Urgency.low, .normal, .high] {
            let order = try small.order(changing: "1", urgency: urgency)
            priorities.append(order.activity?.priority)
            try small.finish(order)
        }
        #expect(priorities == [5, 10, 5])
        try small.change("1", urgency: .high)
        #expect(small.orders().isEmpty)
        #expect(small.scheduler.statusCounts(now: small.now).withheld == 1)
        small.wait(86_400_000)
        #expect(small.orders().map { $0.activity?.priority } == [10])
    }

    @Test func `a token belongs to the client that registered it last`() throws {
        var small = try SmallPushScheduler()
        let start = ActivityStartAddress(type: "A", delivery: apns("bb", "liveactivity"))
        func register(_ name: String) {
            small.register(
                device(
                    [], named: name, delivery: [.stream], activities: [Self.activity()],
                    starts: [start]))
        }
        register("device")
        #expect(
            small.scheduler.addresses(of: key, now: small.now).map(\.sort)
                == [.activity(id: "one"), .start(type: "A")])
        register("heir")
        let dropped = small.scheduler.takeActions().compactMap { action -> String? in
            guard case .drop(key, let address) = action else { return nil }
            return address.apns?.token
        }
        #expect(dropped.sorted() == ["aa", "bb"])
    }

    @Test func `nothing but a start is pushed to where activities are started`() throws {
        let start = ActivityStartAddress(type: "A", delivery: apns("bb", "liveactivity"))
        var small = try SmallPushScheduler(device([], delivery: [.stream], starts: [start]))
        try small.change("1")
        small.head += 1
        small.apply(.reload(.everything))
        small.scheduler.forgetPositions(now: small.now)
        small.expectSilence()
        let resent = small.scheduler.resend(key, channel: .liveactivity, now: small.now)
        #expect(resent == .nowhere)
    }

    @Test func `a resend asks for content and has the next timestamp`() throws {
        var small = try SmallPushScheduler(Self.client([Self.activity()]))
        let resent = small.scheduler.resend(key, channel: .liveactivity, now: small.now)
        #expect(resent == .pushing(1))
        let order = try #require(small.orders().first)
        #expect(order.activity?.priority == 10 && order.isManual)
        #expect(small.scheduler.stamp(order, wall: 7) == 7)
        try small.finish(order, result: .service(.delivered), ends: true)
        try small.change("1")
        #expect(small.orders().isEmpty)
    }

    // MARK: Sources

    @Test func `a source that fails counts once for all that asked it, and the rest wait`() throws {
        var small = try Self.many(20)
        try small.change("1", urgency: .high)
        let asked = small.orders()
        #expect(asked.count == 16)
        try Self.fail(asked, in: &small)
        #expect(small.orders().isEmpty)
        #expect(small.scheduler.sources.values.map(\.failures) == [1])
        small.expectSilence(999)
        small.wait(1)
        let again = small.orders()
        // Those that waited come first.
        #expect(again.count == 16)
        #expect(Set(again.map(\.client)).subtracting(asked.map(\.client)).count == 4)
        // An answer ends the wait for all of them, but not one of before.
        try Self.fail([again[0]], in: &small)
        small.scheduler.contentArrived(again[2].number, isNew: false, now: small.now)
        #expect(small.orders().isEmpty)
        #expect(small.scheduler.sources.values.map(\.failures) == [2])
        small.scheduler.contentArrived(again[1].number, now: small.now)
        #expect(small.scheduler.sources.isEmpty && small.orders().count == 3)
        #expect(Self.alerts(of: &small).isEmpty)
    }

    @Test func `a source that fails again and again is asked less and less, and reported`() throws {
        var small = try Self.many(1)
        try small.change("1")
        var waits: [Int64] = []
        var alerts: [String] = []
        for _ in 0..<12 {
            try Self.fail(small.orders(), .tooLarge, in: &small)
            alerts += Self.alerts(of: &small)
            let due = try #require(small.scheduler.nextDue)
            waits.append(due - small.now)
            small.wait(due - small.now)
        }
        let seconds: [Int64] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
        #expect(waits == seconds.map { $0 * 1_000 })
        #expect(alerts == Array(repeating: "app A too-large", count: 10))
        // The address is not at fault.
        #expect(small.scheduler.statusCounts(now: small.now).failingAddresses.count == 0)
    }

    @Test func `for what a source does not know of one client no other waits`() throws {
        var small = try Self.many(1)
        try small.change("1")
        for failures in 1...5 {
            try Self.fail(small.orders(), .status, in: &small)
            #expect(small.scheduler.sources.values.map(\.failures) == [failures])
            #expect(small.scheduler.queue.paused.isEmpty)
            if failures < 5 { small.wait(300_000) }
        }
        Self.register(1, in: &small)
        try small.change("1", urgency: .high)
        let other = small.orders()
        #expect(other.map(\.client.client) == ["A1"])
        // If it has none for that one either, it begins anew.
        try Self.fail(other, .status, in: &small)
        #expect(small.scheduler.sources.values.map(\.until) == [small.now + 2_000])
        #expect(small.scheduler.queue.paused.count == 1)
    }

    @Test func `a source may ask for a wait, of five minutes at most`() throws {
        for (asked, waited) in [(10, 10), (86_400, 300), (-1, 1)] as [(Int64, Int64)] {
            var small = try Self.many(1)
            try small.change("1")
            try Self.fail(small.orders(), .status, retryAfter: asked, in: &small)
            try small.next(after: waited * 1_000)
        }
    }

    @Test func `a change that waits for its source says so, with the reason`() throws {
        var small = try Self.many(17)
        try small.change("1", urgency: .high)
        try Self.fail(small.orders(), .notAllowed, in: &small)
        for number in 0..<17 {
            let key = ClientKey(app: "app", client: "A\(number)")
            let record = try #require(small.scheduler.clients[key]?.record)
            let standing = small.standing(of: Self.item, record)
            #expect(standing == .withheld(.content, until: small.now + 1_000))
            let address = small.scheduler.addresses(of: key, now: small.now).first
            #expect(address?.failing?.type == "A" && address?.failing?.failure == .notAllowed)
        }
    }

    @Test func `an activity without content of its own says so, whatever others have`() throws {
        var small = try Self.many(2)
        let (first, second) = (
            ClientKey(app: "app", client: "A0"), ClientKey(app: "app", client: "A1")
        )
        for failures in 1...3 {
            try small.change("1", urgency: .high)
            // Whatever waits is asked for.
            small.wait(300_000)
            let orders = small.orders()
            #expect(Set(orders.map(\.client)) == [first, second] && orders.count == 2)
            try Self.fail(orders.filter { $0.client == first }, .invalid, in: &small)
            for order in orders where order.client == second {
                small.scheduler.contentArrived(order.number, now: small.now)
                try small.finish(order)
            }
            #expect(small.scheduler.sources.isEmpty)
            let address = try #require(
                small.scheduler.addresses(of: first, now: small.now).first)
            #expect(address.failing?.type == "A" && address.failing?.failure == .invalid)
            #expect(address.failures == failures && address.retryAt != nil)
            let record = try #require(small.scheduler.clients[first]?.record)
            let standing = small.standing(of: Self.item, record)
            #expect(standing == .withheld(.content, until: address.retryAt))
        }
        #expect(small.scheduler.statusCounts(now: small.now).failingAddresses.count == 0)
        let other = small.scheduler.addresses(of: second, now: small.now).first
        #expect(other != nil && other?.failing == nil)
        // A failure of APNs is one of the address.
        small.wait(300_000)
        try small.finish(small.orders().first, .retry(.connection))
        let address = small.scheduler.addresses(of: first, now: small.now).first
        #expect(address?.failures == 4 && address?.failing == nil)
        #expect(small.scheduler.statusCounts(now: small.now).failingAddresses.count == 1)
    }

    @Test func `for a source that fails no other type, push or app waits`() throws {
        var small = try Self.many(16)
        Self.register(0, type: "B", in: &small)
        small.register()
        try small.change("1", urgency: .high)
        var orders = small.orders()
        #expect(orders.contains { $0.activity == nil })
        try Self.fail(orders.filter { $0.activity?.type == "A" }, in: &small)
        orders = orders.filter { $0.activity?.type != "A" } + small.orders()
        #expect(orders.contains { $0.activity?.type == "B" })
        #expect(small.scheduler.sources.keys.map(\.source) == ["A"])
    }

    @Test func `questions take no place of other pushes`() throws {
        var small = try Self.many(16) { $0.underWayMax = 1 }
        small.register(device(["2"]))
        try small.change("1", urgency: .high)
        let asked = small.orders()
        #expect(asked.count == 16)
        try small.change("2", urgency: .high)
        let push = small.orders()
        #expect(push.map(\.sorts) == [[.timelines]])
        // With its content a push is one like any other.
        small.scheduler.contentArrived(asked[0].number, now: small.now)
        try small.finish(push[0])
        try small.change("2", urgency: .high)
        small.expectSilence(300_000)
        try small.finish(asked[0])
        #expect(small.orders().count == 1)
    }

    @Test func `a question that was not asked says nothing of the source`() throws {
        var small = try Self.many(1)
        let order = try small.order(changing: "1")
        try small.finish(order, result: .notSent)
        #expect(small.scheduler.sources.isEmpty && small.scheduler.queue.questionsUnderWay == 0)
        small.wait(1_000)
        #expect(small.orders().count == 1)
    }

    @Test func `a catalog with another source is asked at once`() throws {
        var small = try Self.many(17)
        try small.change("1", urgency: .high)
        try Self.fail(small.orders(), in: &small)
        #expect(small.orders().isEmpty)
        try small.put(content: "https://other")
        // Nothing becomes stale by it. Those that have failed wait no longer.
        let asked = small.orders()
        #expect(asked.count == 16)
        #expect(asked.allSatisfy { $0.activity?.source.url == "https://other" })
        // What was asked before says nothing of the next one.
        try small.put(content: "https://third")
        try Self.fail(asked, in: &small)
        #expect(small.scheduler.sources.isEmpty && small.orders().count == 1)
    }

    @Test func `a client that goes leaves no question and wakes no other's source`() throws {
        var small = try Self.many(17)
        try small.change("1", urgency: .high)
        let asked = small.orders()
        try Self.fail(asked, in: &small)
        for order in asked { small.scheduler.removed(order.client) }
        #expect(small.orders().isEmpty)
        small.wait(1_000)
        #expect(small.orders().count == 1)
    }
}
