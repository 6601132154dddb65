import Testing
import WidgetModel

@testable import GatewayCore

/// Pushes that an operator requests by hand.
@Suite struct ResendTests {
    private let key = ClientKey(app: "app", client: "device")
    private let hook = DeliveryAddress.webhook(url: "https://hook.example")

    private func resend(
        _ small: inout SmallPushScheduler, _ channel: NotificationChannel = .webhook
    ) throws -> DuePush {
        #expect(small.scheduler.resend(key, channel: channel, now: small.now) == .pushing(1))
        let orders = small.orders()
        #expect(orders.map(\.cause) == [.manual])
        return try #require(orders.first)
    }

    private func health(_ small: SmallPushScheduler) -> (
        WebhookSchedule?, [DeliveryAttempts.Address]
    ) {
        let client = small.scheduler.clients[key]
        return (
            client?.addresses.values.first?.webhook,
            client?.slots.first.flatMap { small.scheduler.lanes[$0]?.attempts.addresses } ?? []
        )
    }

    @Test func `a failing webhook is asked at once, and is no better or worse for it`() throws {
        var small = try SmallPushScheduler(device(delivery: [hook]))
        try small.change("1")
        try small.finish(small.orders().first, .status(500))
        let before = health(small)
        let again = try resend(&small)
        #expect(words(again.content) == "k(a=1)")
        for answer in [.status(500), .status(410), nil] as [WebhookResponse?] {
            try small.finish(again, answer)
            #expect(small.scheduler.takeActions().isEmpty)
            #expect(health(small) == before)
            _ = try resend(&small)
        }
        // The schedule continues as if there had been no request.
        let next = try small.next(after: 5_000)
        #expect(!next.isManual)
    }

    @Test func `what was taken is not said again by itself`() throws {
        var small = try SmallPushScheduler(device(delivery: [hook]))
        let first = try small.order(changing: "1")
        try small.finish(first, .status(500))
        let again = try resend(&small)
        #expect(again.message == first.message)
        try small.finish(again, .status(204))
        small.expectSilence()
        #expect(health(small).0?.failures == 1)
        try small.change("1")
        #expect(small.orders().count == 1)
    }

    @Test func `a disabled webhook is asked, and stays disabled`() throws {
        var small = try SmallPushScheduler(device(delivery: [hook]))
        try small.change("1")
        try small.finish(small.orders().first, .status(410))
        _ = small.scheduler.takeActions()
        let again = try resend(&small)
        try small.finish(again, .status(204))
        #expect(health(small).0?.disabled == .gone)
        try small.change("1")
        small.expectSilence()
    }

    @Test func `where nothing is stale the last push is said again`() throws {
        var small = try SmallPushScheduler(device(["1", "2"], delivery: [hook]))
        try small.change("1")
        try small.finish(small.orders().first, .status(204))
        small.acknowledge()
        let last = try small.order(changing: "2")
        try small.finish(last, .status(204))
        small.acknowledge()
        let again = try resend(&small)
        #expect(words(again.content) == "k(a=2)" && again.message == last.message)
        try small.finish(again, .status(204))
        #expect(words(try resend(&small).content) == "k(a=2)")
    }

    @Test func `where nothing was ever said everything is`() throws {
        var small = try SmallPushScheduler(device(delivery: [hook]))
        #expect(small.orders().isEmpty)
        #expect(words(try resend(&small).content) == "all")
    }

    @Test func `what was said last is known after a restart`() throws {
        let record = device(["1", "2"], delivery: [hook])
        var small = try SmallPushScheduler(record)
        for id in ["1", "2"] {
            try small.change(id)
            try small.finish(small.orders().first, .status(204))
            small.acknowledge()
        }
        small.save()
        let state = try #require(try small.state(of: key))
        small.scheduler.removed(key)
        small.scheduler.restore(record, app: "app", state, now: small.now, wall: small.now)
        #expect(words(try resend(&small).content) == "k(a=2)")
    }

    @Test func `a device is pushed to whatever its budget says, which counts it`() throws {
        var small = try SmallPushScheduler(device())
        try small.push()
        try small.change("1")
        #expect(small.orders().isEmpty)
        let again = try resend(&small, .widgets)
        #expect(!again.mayTryOtherEnvironment)
        small.wait(200_000)
        let late = try resend(&small, .widgets)
        // The interval counts from the last of them.
        try small.next(after: 300_000)
        for order in [again, late] { try small.finish(order, .dropAddress) }
        #expect(small.scheduler.takeActions().isEmpty)
    }

    @Test func `who has no such address is not pushed to`() throws {
        var small = try SmallPushScheduler(device())
        for channel: NotificationChannel in [.webhook, .controls, .stream, .poll] {
            #expect(small.scheduler.resend(key, channel: channel, now: small.now) == .nowhere)
        }
        let stranger = ClientKey(app: "app", client: "stranger")
        #expect(small.scheduler.resend(stranger, channel: .widgets, now: small.now) == .nowhere)
        #expect(small.orders().isEmpty)
    }

    @Test func `no more are made than may be under way`() throws {
        var small = try SmallPushScheduler(device(delivery: [hook])) { $0.underWayMax = 1 }
        let order = try resend(&small)
        #expect(small.scheduler.resend(key, channel: .webhook, now: small.now) == .busy)
        // Others wait for it, and go on when it ends.
        try small.change("1")
        #expect(small.orders().isEmpty)
        try small.finish(order, .status(500))
        #expect(small.orders().map(\.isManual) == [false])
    }

    @Test func `a push from before the log lost its tail says nothing of what came after`() throws {
        var small = try SmallPushScheduler(device(delivery: [hook]))
        try small.change("1")
        try small.finish(small.orders().first, .status(500))
        let order = try resend(&small)
        small.scheduler.forgetPositions(now: small.now)
        try small.finish(order, .status(204))
        small.wait(86_400_000)
        #expect(small.orders().map { words($0.content) } == ["all"])
    }
}
