import Testing
import WidgetModel

@testable import GatewayCore

/// Webhooks whose hosts are slow: who waits for them, and who does not.
@Suite struct PushQueueTests {
    private static let slow = DeliveryAddress.webhook(url: "https://slow.example/hook")
    private static let fast = DeliveryAddress.webhook(url: "https://fast.example/hook")

    private static func scheduler(
        _ slowClients: Int, _ adjust: (inout PushScheduler.Terms) -> Void = { _ in }
    ) throws -> SmallPushScheduler {
        var small = try SmallPushScheduler(adjust: adjust)
        for number in 0..<slowClients { register("slow-\(number)", slow, in: &small) }
        return small
    }

    private static func register(
        _ name: String, _ address: DeliveryAddress, in small: inout SmallPushScheduler
    ) {
        small.register(device(named: name, delivery: [address], since: small.head))
    }

    /// An answer over HTTP/2.
    private static var multiplexed: WebhookResponse {
        var response = WebhookResponse.status(204)
        response.isMultiplexed = true
        return response
    }

    // MARK: Honest hosts

    /// Half a second an answer, four at a time: 50 s for all of them, of which most wait for longer
    /// than a request may take.
    @Test func `clients of a slow host are told in turn, and none of them has failed`() throws {
        var small = try Self.scheduler(400)
        try small.change("1", urgency: .high)
        var underWay = small.orders()
        var told: Set<String> = []
        for _ in 0..<400 {
            #expect(underWay.count <= 4 && small.scheduler.pushesUnderWay == underWay.count)
            let order = try #require(underWay.first)
            underWay.removeFirst()
            told.insert(order.client.client)
            small.wait(125)
            try small.finish(order)
            underWay += small.orders()
        }
        #expect(told.count == 400 && underWay.isEmpty)
        let counts = small.scheduler.statusCounts(now: small.now)
        #expect(counts.told == 400 && counts.waiting == 0)
    }

    @Test func `who has more to hear does not overtake those that wait`() throws {
        var small = try Self.scheduler(3) { $0.webhooksPerHost = 1 }
        try small.change("1", urgency: .high)
        var told: [String] = []
        for _ in 0..<6 {
            let order = try #require(small.orders().first)
            told.append(order.client.client)
            try small.change("1", urgency: .high)
            try small.finish(order)
        }
        #expect(Set(told.prefix(3)).count == 3 && told.suffix(3) == told.prefix(3))
    }

    @Test func `over HTTP/2 a host gets its share, for as long as it speaks that`() throws {
        var small = try Self.scheduler(200)
        try small.change("1", urgency: .high)
        var underWay = small.orders()
        #expect(underWay.count == 4)
        try small.finish(underWay.removeFirst(), Self.multiplexed)
        underWay += small.orders()
        #expect(underWay.count == 64)
        try small.finish(underWay.removeFirst())
        #expect(small.orders().isEmpty)
    }

    @Test func `what the gateway did not send stays due, and says nothing of the host`() throws {
        var small = try Self.scheduler(1)
        let order = try small.order(changing: "1")
        try small.finish(order, result: .notSent)
        #expect(small.orders().isEmpty)
        #expect(
            small.scheduler.addresses(of: order.client, now: small.now).map(\.failures) == [0])
        small.wait(1_000)
        let again = small.orders()
        #expect(again.map(\.message) == [order.message])
        // A failure that is the host's is its first.
        try small.finish(again.first, .status(500))
        small.wait(WebhookSchedule.waits[0])
        #expect(small.orders().count == 1)
    }

    @Test func `a client that registers again waits once`() throws {
        var small = try Self.scheduler(2) { $0.webhooksPerHost = 1 }
        let first = try small.order(changing: "1", urgency: .high)
        for _ in 0..<10 {
            for number in 0..<2 { Self.register("slow-\(number)", Self.slow, in: &small) }
        }
        try small.finish(first)
        let second = small.orders()
        #expect(second.count == 1 && second.first?.client != first.client)
        try small.finish(second.first)
        #expect(small.orders().isEmpty)
    }

    // MARK: Hosts that never answer

    @Test func `a host that never answers has its share, and nobody else waits for it`() throws {
        var small = try Self.scheduler(1_200)
        Self.register("fast", Self.fast, in: &small)
        Self.register("phone", apns(), in: &small)
        try small.change("1", urgency: .high)
        let orders = small.orders()
        #expect(orders.filter { $0.address == Self.slow }.count == 4)
        #expect(orders.filter { $0.address == apns() }.count == 1)
        try small.finish(orders.first { $0.address == Self.fast })
        try small.change("1", urgency: .high)
        #expect(small.orders().map(\.address) == [Self.fast])
    }

    @Test func `no name for it makes a host another one`() throws {
        var small = try Self.scheduler(4)
        for (number, host) in ["SLOW.example", "slow.example:443", "slow.example:0443"].enumerated()
        {
            Self.register("\(number)", .webhook(url: "https://\(host)/\(number)"), in: &small)
        }
        try small.change("1", urgency: .high)
        #expect(small.orders().count == 4)
    }

    @Test func `however many hosts an app names, another app has the next turn but one`() {
        func silent(_ slot: Int) -> PushQueue.Route { .init(app: "a", host: "\(slot % 100)") }
        var queue = PushQueue()
        for slot in 0..<1_000 { queue.wait(slot, for: silent(slot)) }
        var begun: [Int] = []
        while let slot = queue.next() {
            queue.began(silent(slot))
            begun.append(slot)
        }
        #expect(begun.count == 256)
        #expect(Dictionary(grouping: begun) { $0 % 100 }.values.allSatisfy { $0.count < 4 })
        let other = PushQueue.Route(app: "b", host: "x")
        queue.wait(5_000, for: other)
        #expect(!queue.hasRoom(other) && queue.next() == nil)
        // Devices have places of their own.
        queue.wait(6_000, for: .init(app: "a", host: nil))
        #expect(queue.next() == 6_000)
        var next: [Int?] = []
        for slot in begun.prefix(2) {
            queue.ended(silent(slot))
            next.append(queue.next())
            if let slot = next.last ?? nil, slot < 1_000 { queue.began(silent(slot)) }
        }
        #expect(next.contains(5_000))
    }

    @Test func `hosts that clients choose leave half of the places, and those of webhooks`() {
        func chosen(_ slot: Int) -> PushQueue.Route {
            .init(app: "a", host: "\(slot)", isWebPush: true)
        }
        var queue = PushQueue()
        for slot in 0..<1_000 { queue.wait(slot, for: chosen(slot)) }
        var begun: [Int] = []
        while let slot = queue.next() {
            queue.began(chosen(slot))
            begun.append(slot)
        }
        #expect(begun.count == 128 && !queue.hasRoom(chosen(2_000), isManual: true))
        for slot in 5_000..<5_128 {
            let webhook = PushQueue.Route(app: "a", host: "\(slot - 5_000)")
            queue.wait(slot, for: webhook)
            #expect(queue.next() == slot)
            queue.began(webhook)
        }
        #expect(queue.next() == nil)
        queue.ended(chosen(begun[0]))
        #expect(queue.next() == 128)
    }

    @Test func `the sources of an app take turns, and for one that fails no other waits`() throws {
        func source(_ type: String, of app: String = "a") -> PushQueue.Route {
            .init(app: app, host: nil, source: type)
        }
        var queue = PushQueue()
        for slot in 0..<20 { queue.wait(slot, for: source("x")) }
        queue.wait(100, for: source("y"))
        var begun: [Int] = []
        while let slot = queue.next() {
            queue.began(source(slot < 100 ? "x" : "y"))
            begun.append(slot)
        }
        #expect(begun.count == PushScheduler.questionsPerApp && begun.contains(100))
        #expect(!queue.hasRoom(source("y"), isManual: true))
        // Another app has places of its own.
        queue.wait(200, for: source("x", of: "b"))
        #expect(queue.next() == 200)
        // Both wait for a place, and have a turn when there is one.
        queue.wait(101, for: source("y"))
        #expect(queue.next() == nil)
        queue.pause(source("x"))
        queue.ended(source("y"))
        #expect(queue.next() == 101 && queue.next() == nil)
        #expect(!queue.hasRoom(source("x")) && queue.hasRoom(source("x"), isManual: true))
        queue.resume(source("x"))
        let slot = queue.next()
        let last = try #require(slot)
        #expect(last < 20 && queue.questionsUnderWay == 15)
    }

    @Test func `questions of one app and pushes of another take turns`() throws {
        let question = PushQueue.Route(app: "a", host: nil, source: "x")
        let push = PushQueue.Route(app: "b", host: nil)
        var queue = PushQueue()
        for slot in 0..<30 {
            queue.wait(slot, for: question)
            queue.wait(100 + slot, for: push)
        }
        var pushes = 0
        var asked: [Int] = []
        // All places are taken, and one after the other becomes free.
        for place in 1...10 {
            while pushes < place {
                let next = queue.next()
                let slot = try #require(next)
                if slot < 100 {
                    queue.began(question)
                    asked.append(slot)
                } else {
                    queue.began(push)
                    pushes += 1
                }
            }
            #expect(abs(asked.count - pushes) <= 1)
        }
    }

    @Test func `sources that wait for a place have it in the order in which they came`() {
        func source(_ type: String) -> PushQueue.Route { .init(app: "a", host: nil, source: type) }
        var queue = PushQueue()
        for _ in 0..<PushScheduler.questionsPerApp { queue.began(source("x")) }
        for (slot, type) in ["f", "b", "e", "a", "d", "c"].enumerated() {
            queue.wait(slot, for: source(type))
        }
        #expect(queue.next() == nil)
        queue.ended(source("x"))
        queue.ended(source("x"))
        var turns: [Int?] = []
        for _ in 0..<6 { turns.append(queue.next()) }
        #expect(turns == [0, 1, 2, 3, 4, 5])
    }

    @Test func `a person may use a host's whole share, and no more`() throws {
        var small = try Self.scheduler(20) { $0.webhooksMax = 32 }
        try small.change("1", urgency: .high)
        #expect(small.orders().count == 4)
        let results = (0..<20).map { number in
            small.scheduler.resend(
                ClientKey(app: "app", client: "slow-\(number)"), channel: .webhook,
                now: small.now)
        }
        #expect(results.filter { $0 == .pushing(1) }.count == 4)
        #expect(results.filter { $0 == .busy }.count == 16)
    }

    // MARK: Streams that are asked what they sent

    /// Returns a scheduler whose clients have not confirmed a change that their streams sent. The
    /// app has collapse windows, so the streams are asked.
    private static func streaming(
        _ addresses: [DeliveryAddress], _ adjust: (inout PushScheduler.Terms) -> Void = { _ in }
    ) throws -> SmallPushScheduler {
        var small = try scheduler(0, adjust)
        let item: JSONValue = ["entity": "E", "match": ["id": "$a"]]
        try small.put(also: [kind([item], named: "w", collapse: 60_000)])
        for (number, address) in addresses.enumerated() {
            register("\(number)", address, in: &small)
            small.scheduler.streamOpened(
                ClientKey(app: "app", client: "\(number)"), resuming: small.head, now: small.now)
        }
        try small.change("1", urgency: .high)
        small.now += DeliveryAttempts.grace
        // The answers are up to the test.
        small.scheduler.advance(now: small.now)
        return small
    }

    /// Returns the clients whose streams are asked since the last call.
    private static func asked(_ small: inout SmallPushScheduler) -> [ClientKey] {
        small.scheduler.takeActions().compactMap {
            if case .readSent(let key) = $0 { key } else { nil }
        }
    }

    @Test func `the streams are asked of those that have a place`() throws {
        var small = try Self.streaming(Array(repeating: Self.slow, count: 10))
        let first = Self.asked(&small)
        try #require(first.count == 4)
        small.scheduler.received(sentUpTo: small.head, about: first[0], now: small.now)
        let orders = small.orders()
        #expect(orders.map(\.client) == [first[0]])
        // A client that is gone leaves its place to the next.
        small.scheduler.removed(first[1])
        try small.finish(orders.first)
        #expect(Self.asked(&small).count == 2)
    }

    @Test func `questions count as pushes under way`() throws {
        var small = try Self.streaming([apns("a"), apns("b")]) { $0.underWayMax = 1 }
        let first = Self.asked(&small)
        try #require(first.count == 1)
        #expect(small.scheduler.pushesUnderWay == 1)
        // An id that cannot be read delays nothing.
        small.scheduler.received(sentUpTo: nil, about: first[0], now: small.now)
        let orders = small.orders()
        #expect(orders.map(\.client) == first)
        try small.finish(orders.first)
        #expect(Self.asked(&small).count == 1)
    }
}
