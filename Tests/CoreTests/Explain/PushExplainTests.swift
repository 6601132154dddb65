import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct PushExplainTests {
    private let item = Subscription(place: .widget(0), kind: "k", count: 1)
    private let key = ClientKey(app: "app", client: "device")

    private func standing(
        _ small: SmallPushScheduler, at sequence: UInt64, of record: ClientRecord = device()
    ) -> Outcome? {
        small.scheduler.standing(of: item, record, app: "app", at: sequence, now: small.now)
    }

    private func forecast(
        _ small: SmallPushScheduler, _ urgency: Urgency = .normal, devices: Int = 1
    ) -> Outcome? {
        small.scheduler.forecast(
            of: item, device(), app: "app", urgency: urgency, devices: devices, now: small.now)
    }

    @Test func `a push is under way, was taken, and is confirmed`() throws {
        var small = try SmallPushScheduler(device())
        #expect(forecast(small) == .sent(.widgets))
        try small.change("1")
        #expect(standing(small, at: 2) == .withheld(.underWay, until: nil))
        try small.finish(small.orders().first)
        #expect(standing(small, at: 2) == .sent(.widgets))
        small.scheduler.acknowledged(key, upTo: 2, now: small.now)
        #expect(standing(small, at: 2) == .confirmed)
        #expect(standing(small, at: 2, of: device(named: "nobody")) == nil)
    }

    @Test func `a kind that was pushed for waits for its interval`() throws {
        var small = try SmallPushScheduler(device())
        try small.push()
        let until = small.now + 300_000
        #expect(forecast(small) == .withheld(.interval, until: until))
        try small.change("1")
        #expect(standing(small, at: 3) == .withheld(.interval, until: until))
        #expect(standing(small, at: 2) == .sent(.widgets))
    }

    @Test func `a budget that is used up withholds, and less what is urgent`() throws {
        var small = try SmallPushScheduler(device()) { $0.interval = 0 }
        for _ in 0..<5 { try small.push() }
        try small.change("1")
        guard case .withheld(.budget, let until?)? = standing(small, at: small.head) else {
            Issue.record("\(String(describing: standing(small, at: small.head)))")
            return
        }
        #expect(until > small.now)
        #expect(forecast(small) == .withheld(.budget, until: until))
        #expect(forecast(small, .high) == .sent(.widgets))
        // It goes out at the forecast moment.
        try small.next(after: until - small.now)
    }

    @Test func `a stream has its chance, and a change for many is spread`() throws {
        var small = try SmallPushScheduler { $0.spread = PushSpread.Terms(devicesPerSecond: 1) }
        for index in 0..<9 {
            small.register(device(named: "d\(index)", delivery: [apns("a\(index)")]))
        }
        small.register()
        guard case .withheld(.spread, let until?)? = forecast(small, devices: 10) else {
            Issue.record("\(String(describing: forecast(small, devices: 10)))")
            return
        }
        try small.change("1")
        #expect(standing(small, at: 2) == .withheld(.spread, until: until))
        small.wait(until - small.now)
        for order in small.orders() { try small.finish(order) }
        #expect(standing(small, at: 2) == .sent(.widgets))
        small.wait(3_600_000)
        small.scheduler.streamOpened(key, resuming: 2, now: small.now)
        try small.change("1", urgency: .high)
        #expect(standing(small, at: 3) == .withheld(.grace, until: small.now + 20_000))
    }

    @Test func `a failure is tried again, a refusal is not, a dead address never`() throws {
        var small = try SmallPushScheduler(device())
        try small.push(.retry(.device))
        #expect(standing(small, at: 2) == .withheld(.retry, until: small.now + 60_000))
        small.wait(60_000)
        try small.finish(small.orders().first, .giveUp)
        #expect(standing(small, at: 2) == .unreachable(.refused))
        try small.push(.stop(.topic))
        #expect(standing(small, at: 3) == .withheld(.stopped, until: nil))
        #expect(forecast(small) == .withheld(.stopped, until: nil))

        var other = try SmallPushScheduler(device())
        try other.push(.dropAddress)
        #expect(standing(other, at: 2) == .unreachable(.deadAddress))
        #expect(forecast(other) == .unreachable(.deadAddress))
        let addresses = other.scheduler.addresses(of: key, now: other.now)
        #expect(addresses.map(\.absence) == [.deadAddress])
    }

    @Test func `a webhook that is gone is disabled`() throws {
        let record = device(delivery: [.webhook(url: "https://example.com/hook")])
        var small = try SmallPushScheduler(record)
        try small.change("1")
        let order = try #require(small.orders().first)
        try small.finish(order, .status(410))
        #expect(standing(small, at: 2, of: record) == .unreachable(.disabledWebhook))
        #expect(item.pushChannel(in: record.registration) == .webhook)
    }

    /// The answer for each push target is what the scheduler does with it next.
    @Test(arguments: 0..<40)
    func `what is withheld goes out at the moment that was named`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var small = try SmallPushScheduler {
            $0.interval = random.pick([0, 60_000, 300_000])
            $0.spread = PushSpread.Terms(devicesPerSecond: random.pick([1, 1_000]))
        }
        let record = device(delivery: [.stream, apns()])
        small.register(record)
        for index in 0..<5 {
            small.register(device(named: "d\(index)", delivery: [apns("a\(index)")]))
        }
        var last: UInt64 = 0
        for _ in 0..<60 {
            switch random.below(6) {
            case 0...2:
                let predicted = forecast(small, devices: 6)
                try small.change("1")
                last = small.head
                let standing = standing(small, at: last, of: record)
                switch predicted {
                case .sent: #expect(standing == .withheld(.underWay, until: nil))
                // A push that waits already may go sooner than the forecast for the change alone.
                default: #expect(standing != nil)
                }
            case 3: small.scheduler.streamOpened(key, resuming: last, now: small.now)
            case 4: small.scheduler.streamEnded(key, now: small.now)
            default: small.wait(Int64(random.below(400_000)))
            }
            for order in small.orders() {
                try small.finish(order, random.pick([.delivered, .delivered, .retry(.device)]))
            }
            guard last > 0, case .withheld(let reason, let until?)? = standing(small, at: last)
            else { continue }
            var ahead = small
            ahead.wait(until - ahead.now - 1)
            #expect(
                !ahead.orders().contains { $0.client == key }, "\(reason) too early, seed \(seed)")
            ahead.wait(1)
            let isOut = ahead.orders().contains { $0.client == key }
            let after = standing(ahead, at: last)
            // Once the grace or the spread is over, the budget may be asked for the first time.
            let isHeldFurther = after.map { $0 != .withheld(reason, until: until) } ?? false
            #expect(isOut || isHeldFurther, "\(reason) until \(until), seed \(seed)")
        }
    }
}

@Suite struct OutcomeTests {
    private let widget = Subscription(place: .widget(0), kind: "k", count: 1)
    private let set = Subscription(place: .recommendations(0), kind: "k", count: 1)
    private let record = client([], confirmed: ["k": 5])

    private func outcome(
        at sequence: UInt64 = 10, of item: Subscription? = nil, stream: StreamDeliveryState? = nil,
        push: Outcome? = nil, _ change: (inout DeliveryProgress) -> Void = { _ in }
    ) -> Outcome {
        var hearing = DeliveryProgress()
        change(&hearing)
        return Outcome(
            of: sequence, for: item ?? widget, of: record, hearing, stream: stream, push: push)
    }

    @Test func `only the client's own word confirms`() {
        #expect(outcome { $0.confirmed(upTo: 10) } == .confirmed)
        #expect(outcome(push: .confirmed) == .confirmed)
        #expect(outcome { $0.confirmed(upTo: 9) } != .confirmed)
        #expect(outcome { $0.polled(upTo: 10, kinds: nil) } == .sent(.poll))
        #expect(outcome { $0.streamed(upTo: 10, kinds: nil) } == .sent(.stream))
        #expect(outcome(stream: .sent) == .sent(.stream))
    }

    @Test func `a set is confirmed by name, and by no cursor`() {
        #expect(outcome(of: set) { $0.confirmed(upTo: 99) } == .unreachable(.awaitsClient))
        #expect(outcome(at: 5, of: set) == .confirmed)
        #expect(outcome(at: 6, of: set, push: .confirmed) == .unreachable(.awaitsClient))
    }

    @Test func `what was said of one kind says nothing of others`() {
        #expect(outcome { $0.polled(upTo: 10, kinds: ["k"]) } == .sent(.poll))
        #expect(outcome { $0.polled(upTo: 10, kinds: ["l"]) } == .unreachable(.awaitsClient))
        #expect(outcome { $0.streamed(upTo: 9, kinds: ["k"]) } == .unreachable(.awaitsClient))
        #expect(outcome() == .unreachable(.awaitsClient))
        #expect(
            outcome { $0 = DeliveryProgress(isRestored: true) } == .unreachable(.unknownSinceStart))
        #expect(
            outcome {
                $0 = DeliveryProgress(isRestored: true)
                $0.confirmed(upTo: 9)
            } == .unreachable(.awaitsClient))
    }

    @Test func `the client's cursors are remembered for a bounded number of kinds`() {
        var hearing = DeliveryProgress()
        hearing.polled(upTo: 7, kinds: Set((0..<64).map { "k\($0)" }))
        hearing.polled(upTo: 7, kinds: ["more"])
        #expect(hearing.polled("k3") == 7 && hearing.polled("more") == 0)
        hearing.polled(upTo: 8, kinds: ["k3"])
        #expect(hearing.polled("k3") == 8)
    }

    @Test func `what was said comes before what is about to be`() {
        #expect(
            outcome(stream: .waits(until: 5)) { $0.polled(upTo: 10, kinds: nil) } == .sent(.poll))
        #expect(outcome(stream: .collapsed(into: 12)) == .collapsed(into: 12))
        #expect(
            outcome(stream: .waits(until: 5), push: .withheld(.grace, until: 9))
                == .withheld(.collapse, until: 5))
        #expect(outcome(stream: .waits(until: 5), push: .sent(.widgets)) == .sent(.widgets))
        #expect(outcome(stream: .lagging) == .withheld(.slowReader, until: nil))
        #expect(outcome(push: .withheld(.budget, until: 9)) == .withheld(.budget, until: 9))
        #expect(outcome(push: .unreachable(.deadAddress)) == .unreachable(.deadAddress))
    }

    @Test func `of several streams the one that says it first counts`() {
        let all: [StreamDeliveryState] = [
            .sent, .collapsed(into: 3), .collapsed(into: 4), .waits(until: 1), .waits(until: 2),
            .lagging,
        ]
        for (place, left) in all.enumerated() {
            #expect(left.sooner(nil) == left)
            for (other, right) in all.enumerated() {
                #expect(left.sooner(right) == all[min(place, other)])
            }
        }
    }
}
