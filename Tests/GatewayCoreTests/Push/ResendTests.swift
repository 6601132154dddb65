import Testing
import WidgetModel

@testable import GatewayCore
@testable import GatewayPush

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

    private func finish(
        _ small: inout SmallPushScheduler, _ order: DuePush, _ answer: WebhookResponse?
    ) {
        small.scheduler.finished(order.number, .webhook(answer), now: small.now, random: 0)
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
        var small = try SmallPushScheduler()
        small.scheduler.registered(device(delivery: [hook]), app: "app", now: small.now)
        try small.change("1")
        finish(&small, try #require(small.orders().first), .status(500))
        let before = health(small)
        let again = try resend(&small)
        #expect(words(again.content) == "k(a=1)")
        for answer in [.status(500), .status(410), nil] as [WebhookResponse?] {
            finish(&small, again, answer)
            #expect(small.scheduler.takeActions().isEmpty)
            #expect(health(small) == before)
            _ = try resend(&small)
        }
        // The schedule continues as if there had been no request.
        small.wait(4_999)
        #expect(small.orders().isEmpty)
        small.wait(1)
        #expect(small.orders().map(\.isManual) == [false])
    }

    @Test func `what was taken is not said again by itself`() throws {
        var small = try SmallPushScheduler()
        small.scheduler.registered(device(delivery: [hook]), app: "app", now: small.now)
        try small.change("1")
        let first = try #require(small.orders().first)
        finish(&small, first, .status(500))
        let again = try resend(&small)
        #expect(again.message == first.message)
        finish(&small, again, .status(204))
        small.wait(86_400_000)
        #expect(small.orders().isEmpty)
        #expect(health(small).0?.failures == 1)
        try small.change("1")
        #expect(small.orders().count == 1)
    }

    @Test func `a disabled webhook is asked, and stays disabled`() throws {
        var small = try SmallPushScheduler()
        small.scheduler.registered(device(delivery: [hook]), app: "app", now: small.now)
        try small.change("1")
        finish(&small, try #require(small.orders().first), .status(410))
        _ = small.scheduler.takeActions()
        let again = try resend(&small)
        finish(&small, again, .status(204))
        #expect(health(small).0?.disabled == .gone)
        try small.change("1")
        small.wait(86_400_000)
        #expect(small.orders().isEmpty)
    }

    @Test func `where nothing is stale the last push is said again`() throws {
        var small = try SmallPushScheduler()
        small.scheduler.registered(
            device(["1", "2"], delivery: [hook]), app: "app", now: small.now)
        try small.change("1")
        finish(&small, try #require(small.orders().first), .status(204))
        small.scheduler.acknowledged(key, upTo: small.head, now: small.now)
        try small.change("2")
        let last = try #require(small.orders().first)
        finish(&small, last, .status(204))
        small.scheduler.acknowledged(key, upTo: small.head, now: small.now)
        let again = try resend(&small)
        #expect(words(again.content) == "k(a=2)" && again.message == last.message)
        finish(&small, again, .status(204))
        #expect(words(try resend(&small).content) == "k(a=2)")
    }

    @Test func `where nothing was ever said everything is`() throws {
        var small = try SmallPushScheduler()
        small.scheduler.registered(device(delivery: [hook]), app: "app", now: small.now)
        #expect(small.orders().isEmpty)
        #expect(words(try resend(&small).content) == "all")
    }

    @Test func `what was said last is known after a restart`() throws {
        var small = try SmallPushScheduler()
        let record = device(["1", "2"], delivery: [hook])
        small.scheduler.registered(record, app: "app", now: small.now)
        for id in ["1", "2"] {
            try small.change(id)
            finish(&small, try #require(small.orders().first), .status(204))
            small.scheduler.acknowledged(key, upTo: small.head, now: small.now)
        }
        let saved = small.scheduler.takeChanged(limit: 9, now: small.now, wall: small.now)
        small.scheduler.removed(key)
        small.scheduler.restore(
            record, app: "app", try #require(saved.first?.saved), now: small.now, wall: small.now)
        #expect(words(try resend(&small).content) == "k(a=2)")
    }

    @Test func `a device is pushed to whatever its budget says, which counts it`() throws {
        var small = try SmallPushScheduler()
        small.scheduler.registered(device(), app: "app", now: small.now)
        try small.change("1")
        try small.finish(small.orders().first)
        try small.change("1")
        #expect(small.orders().isEmpty)
        let again = try resend(&small, .widgets)
        #expect(!again.mayTryOtherEnvironment)
        small.wait(200_000)
        let late = try resend(&small, .widgets)
        // The interval counts from the last of them.
        small.wait(299_999)
        #expect(small.orders().isEmpty)
        small.wait(1)
        #expect(small.orders().count == 1)
        for order in [again, late] { try small.finish(order, .dropAddress) }
        #expect(small.scheduler.takeActions().isEmpty)
    }

    @Test func `who has no such address is not pushed to`() throws {
        var small = try SmallPushScheduler()
        small.scheduler.registered(device(), app: "app", now: small.now)
        for channel: NotificationChannel in [.webhook, .controls, .stream, .poll] {
            #expect(small.scheduler.resend(key, channel: channel, now: small.now) == .nowhere)
        }
        let stranger = ClientKey(app: "app", client: "stranger")
        #expect(small.scheduler.resend(stranger, channel: .widgets, now: small.now) == .nowhere)
        #expect(small.orders().isEmpty)
    }

    @Test func `no more are made than may be under way`() throws {
        var terms = PushScheduler.Terms()
        terms.underWayMax = 1
        var small = try SmallPushScheduler(terms: terms)
        small.scheduler.registered(device(delivery: [hook]), app: "app", now: small.now)
        let order = try resend(&small)
        #expect(small.scheduler.resend(key, channel: .webhook, now: small.now) == .busy)
        // Others wait for it, and go on when it ends.
        try small.change("1")
        #expect(small.orders().isEmpty)
        finish(&small, order, .status(500))
        #expect(small.orders().map(\.isManual) == [false])
    }

    @Test func `a push from before the log lost its tail says nothing of what came after`() throws {
        var small = try SmallPushScheduler()
        small.scheduler.registered(device(delivery: [hook]), app: "app", now: small.now)
        try small.change("1")
        finish(&small, try #require(small.orders().first), .status(500))
        let order = try resend(&small)
        small.scheduler.forgetPositions(now: small.now)
        finish(&small, order, .status(204))
        small.wait(86_400_000)
        #expect(small.orders().map { words($0.content) } == ["all"])
    }
}
