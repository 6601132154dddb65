import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

/// Webhooks of clients that also have another address for pushes.
@Suite struct SharedWebhookTests {
    private let hook = DeliveryAddress.webhook(url: "https://hook.example")

    /// Returns a client with a widget, a set and two controls of item 1. The controls have no
    /// address of their own.
    private func client(_ delivery: [DeliveryAddress]) -> ClientRecord {
        device(
            delivery: delivery,
            recommendations: [
                RecommendationSet(
                    kind: "k", items: [.init(parameters: ["a": .single("1")], description: "one")])
            ],
            controls: ["1", "2"].map { id in
                PlacedControl(
                    kind: "c", id: "control-\(id)", parameters: ["a": .single(id)], delivery: nil)
            }, confirmed: ["k": 1])
    }

    @Test func `a webhook is told of widgets, sets and controls in one push`() throws {
        var small = try SmallPushScheduler(client([hook, apns()]))
        #expect(small.orders().isEmpty)
        try small.change("1")
        let first = small.orders()
        #expect(first.map { words($0.content) } == ["k(a=1), c.control"])
        let order = try #require(first.first)
        #expect(order.address == hook)
        #expect(order.sorts == [.timelines, .control(id: "control-1")])
        try small.finish(order, .status(204))
        #expect(small.orders().isEmpty)
        let second = try small.order(entity: "F")
        #expect(words(second.content) == "k.recommendations")
        // It fails for all categories, and is tried again once.
        try small.finish(second, .status(500))
        try small.change("1")
        small.wait(5_000)
        let third = small.orders()
        #expect(third.map { words($0.content) } == ["k(a=1), c.control, k.recommendations"])
        try small.finish(third.first, .status(410))
        // The webhook is gone for all categories: timelines go to the next address, and the rest
        // has none.
        let gone = small.scheduler.statusCounts(now: small.now).goneWebhooks
        #expect(gone.count == 1 && gone.example?.app == "app")
        #expect(small.orders().map(\.address) == [apns()])
        small.expectSilence()
    }

    @Test func `an address that fails again and again is a problem, once`() throws {
        var small = try SmallPushScheduler(client([hook]))
        try small.change("1")
        for round in 1...3 {
            let order = try #require(small.orders().first)
            try small.finish(order, .status(503))
            let failing = small.scheduler.statusCounts(now: small.now).failingAddresses
            #expect(failing.count == (round < 3 ? 0 : 1))
            small.wait(86_400_000)
        }
        let order = try #require(small.orders().first)
        try small.finish(order, .status(204))
        let counts = small.scheduler.statusCounts(now: small.now)
        #expect(counts.failingAddresses.count == 0 && counts.failedWebhooks.count == 0)
    }

    @Test func `a webhook after APNs is told when that fails, of what it has not heard`() throws {
        var small = try SmallPushScheduler(client([apns(), hook]))
        try small.change("1")
        let orders = small.orders()
        #expect(Set(orders.map(\.address)) == [apns(), hook])
        // Controls have no other address here, so the webhook is notified, and of the widget as
        // well.
        let told = try #require(orders.first { $0.address == hook })
        #expect(words(told.content) == "k(a=1), c.control")
    }

    @Test func `a resend says all of it, once`() throws {
        var small = try SmallPushScheduler(client([hook, apns()]))
        let order = try small.order(changing: "1")
        try small.finish(order, .status(204))
        let key = ClientKey(app: "app", client: "device")
        #expect(small.scheduler.resend(key, channel: .webhook, now: small.now) == .pushing(1))
        let again = small.orders()
        #expect(again.map { words($0.content) } == ["k(a=1), c.control"])
        #expect(again.first?.message == order.message)
    }

    /// Whatever happens, the last push to the webhook follows the last change, and only one push at
    /// a time is about each category.
    @Test(arguments: 0..<300)
    func `whatever it answers, it is told of the last change in the end`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var small = try SmallPushScheduler(client([hook, apns()]))
        let key = ClientKey(app: "app", client: "device")
        var underWay: [DuePush] = []
        /// The sequences up to which the webhook was notified of items and of sets.
        var told: [UInt64] = [0, 0]
        var changed: [UInt64] = [0, 0]
        func take(_ small: inout SmallPushScheduler) {
            for order in small.orders() where order.address == hook {
                for other in underWay where !order.isManual && !other.isManual {
                    #expect(Set(other.sorts).isDisjoint(with: order.sorts), "seed \(seed)")
                }
                underWay.append(order)
            }
        }
        func finish(_ small: inout SmallPushScheduler, _ answer: WebhookResponse?) throws {
            guard !underWay.isEmpty else { return }
            let order = underWay.remove(at: random.below(underWay.count))
            if answer == .status(204) {
                let isOfSets = order.sorts.contains(.recommendations)
                if order.sorts.contains(.timelines) { told[0] = max(told[0], order.position) }
                if isOfSets { told[1] = max(told[1], order.position) }
            }
            try small.finish(order, answer)
        }
        for _ in 0..<60 {
            switch random.below(8) {
            case 0, 1:
                let isOfSets = random.below(2) == 0
                try small.change("1", entity: isOfSets ? "F" : "E")
                changed[isOfSets ? 1 : 0] = small.head
            case 2, 3: try finish(&small, .status(204))
            case 4: try finish(&small, random.below(2) == 0 ? .none : .status(500))
            case 5: _ = small.scheduler.resend(key, channel: .webhook, now: small.now)
            default: small.wait(random.pick([0, 1_000, 400_000, 7_200_000]))
            }
            take(&small)
        }
        for _ in 0..<40 {
            while !underWay.isEmpty { try finish(&small, .status(204)) }
            small.wait(7_200_000)
            take(&small)
        }
        #expect(told[0] >= changed[0] && told[1] >= changed[1], "seed \(seed)")
    }
}
