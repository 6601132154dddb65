import Testing
import WidgetModel

@testable import GatewayCore

/// A push scheduler that is reconfigured while it works.
@Suite struct PushConfiguringTests {
    private let production = PushScheduler.AppService(app: "app", .apns(.production))
    private let sandbox = PushScheduler.AppService(app: "app", .apns(.sandbox))

    private func terms(_ change: (inout PushScheduler.Terms) -> Void = { _ in })
        -> PushScheduler.Terms
    {
        var terms = PushScheduler.Terms()
        terms.interval = 0
        change(&terms)
        return terms
    }

    private func configure(
        _ small: inout SmallPushScheduler, _ terms: PushScheduler.Terms,
        mended: Set<PushScheduler.AppService> = [], liftsStops: Bool = false
    ) {
        small.scheduler.configure(terms, mended: mended, liftsStops: liftsStops, now: small.now)
    }

    // MARK: Refused pushes

    @Test func `a stop is lifted where the configuration was mended, and nowhere else`() throws {
        var small = try SmallPushScheduler(device(), terms: terms())
        try small.push(.stop(.credential))
        configure(&small, terms(), mended: [sandbox])
        try small.change("1")
        small.expectSilence()
        configure(&small, terms(), mended: [production])
        #expect(small.orders().count == 1)
    }

    @Test func `who asks for it has every stop lifted`() throws {
        var small = try SmallPushScheduler(device(), terms: terms())
        try small.push(.stop(.topic))
        configure(&small, terms())
        #expect(small.orders().isEmpty)
        configure(&small, terms(), liftsStops: true)
        let order = small.orders().first
        #expect(order != nil)
        // The push is refused again, so the stop is as strict as before, also when more changes.
        try small.finish(order, .stop(.topic))
        try small.change("1")
        #expect(small.scheduler.statusCounts(now: small.now).withheld == 1)
        small.expectSilence()
    }

    @Test(arguments: [
        APNsReaction.Verdict.stop(.credential), .stop(.topic), .quarantineAddress, .giveUp,
    ])
    func `what was under way when it was mended refuses nothing any more`(
        verdict: APNsReaction.Verdict
    ) throws {
        var small = try SmallPushScheduler(device(), terms: terms())
        try small.change("1")
        let order = small.orders().first
        configure(&small, terms(), mended: [production])
        #expect(small.orders().isEmpty)
        try small.finish(order, verdict)
        let again = small.orders()
        #expect(again.count == 1)
        // A refusal under the new configuration counts.
        try small.finish(again.first, verdict)
        small.expectSilence()
    }

    @Test(arguments: [APNsReaction.Verdict.quarantineAddress, .giveUp, .retry(.device)])
    func `addresses that were refused, or wait, are tried at once with what is mended`(
        verdict: APNsReaction.Verdict
    ) throws {
        var small = try SmallPushScheduler(device(), terms: terms())
        try small.push(verdict)
        configure(&small, terms(), liftsStops: true)
        #expect(small.orders().isEmpty)
        configure(&small, terms(), mended: [production])
        try small.finish(small.orders().first)
        #expect(small.scheduler.statusCounts(now: small.now).told == 1)
    }

    @Test func `dead tokens stay dead, and those of others theirs`() throws {
        var small = try SmallPushScheduler(device(), terms: terms())
        small.register(device(named: "loser", delivery: [apns("bb")]))
        small.register(device(["2"], named: "owner", delivery: [apns("bb")]))
        try small.push(.dropAddress)
        configure(&small, terms(), mended: [production], liftsStops: true)
        #expect(small.orders().isEmpty)
        try small.change("2")
        #expect(small.orders().map(\.client.client) == ["owner"])
    }

    @Test func `very many devices are not woken at once when a stop is lifted`() throws {
        var small = try SmallPushScheduler(terms: terms())
        for index in 0..<50 {
            small.register(
                device(named: "d\(index)", delivery: [apns("aa0\(index % 10)\(index / 10)")]))
        }
        try small.change("1")
        for order in small.orders() { try small.finish(order, .stop(.credential)) }
        let spread = terms { $0.spread = PushSpread.Terms(devicesPerSecond: 5) }
        configure(&small, spread, mended: [production])
        let first = small.orders().count
        #expect(first < 25)
        small.wait(10_000)
        #expect(first + small.orders().count == 50)
    }

    // MARK: Apps that come and go

    @Test func `an app that is configured no more is left alone, and is owed what it missed`()
        throws
    {
        var small = try SmallPushScheduler(device(), terms: terms())
        try small.push()
        configure(&small, terms { $0.apnsApps = ["other"] })
        try small.change("1")
        small.expectSilence(1_000)
        #expect(small.scheduler.statusCounts(now: small.now) == PushScheduler.StatusCounts())
        #expect(
            small.scheduler.resend(
                ClientKey(app: "app", client: "device"), channel: .widgets, now: small.now)
                == .nowhere)
        small.register(device(named: "late", delivery: [apns("bb")]))
        configure(&small, terms { $0.apnsApps = ["app"] }, mended: [production])
        #expect(Set(small.orders().map(\.client.client)) == ["device", "late"])
    }

    @Test func `a client's next address is asked while the app of the first is not configured`()
        throws
    {
        let hook = DeliveryAddress.webhook(url: "https://hook.test/")
        var small = try SmallPushScheduler(
            device(delivery: [apns(), hook]), terms: terms { $0.hasWebhooks = false })
        configure(&small, terms { $0.apnsApps = [] })
        try small.change("1")
        let order = small.orders().first
        #expect(order?.address == hook)
    }

    // MARK: Budgets

    @Test func `a day's pushes are those of the new budget, less what was spent`() throws {
        func pushes(_ small: inout SmallPushScheduler, _ times: Int) throws -> Int {
            var made = 0
            for _ in 0..<times {
                try small.change("1", urgency: .high)
                for order in small.orders() {
                    try small.finish(order)
                    made += 1
                }
            }
            return made
        }
        var small = try SmallPushScheduler(device(), terms: terms())
        #expect(try pushes(&small, 3) == 3)
        let few = terms {
            $0.budget[.widgets] = PushAllowance.Terms(perDay: 20, burst: 3, reserve: 1)
        }
        configure(&small, few)
        // A third of the previous budget is spent, and so is a third of the new one.
        #expect(try pushes(&small, 5) == 2)
        #expect(small.scheduler.statusCounts(now: small.now).withheld == 1)
        configure(&small, terms())
        #expect(small.orders().isEmpty)
        #expect(small.scheduler.takeChanged(limit: 9, now: small.now, wall: 0).count == 1)
        small.wait(36 * 60_000)
        #expect(small.orders().count == 1)
    }

    @Test func `what was withheld is asked for anew`() throws {
        var small = try SmallPushScheduler(device(), terms: terms { $0.interval = 3_600_000 })
        try small.push()
        try small.change("1")
        #expect(small.orders().isEmpty)
        configure(&small, terms { $0.intervals = ["k": 60_000] })
        #expect(small.orders().isEmpty)
        small.wait(60_000)
        #expect(small.orders().count == 1)
    }

    @Test func `those that waited for room go when there is more`() throws {
        var small = try SmallPushScheduler(terms: terms { $0.underWayMax = 1 })
        for name in ["a", "b", "c"] {
            small.register(device(named: name, delivery: [apns("aa\(name)\(name)")]))
        }
        try small.change("1")
        #expect(small.orders().count == 1)
        configure(&small, terms { $0.underWayMax = 5 })
        #expect(small.orders().count == 2)
    }
}
