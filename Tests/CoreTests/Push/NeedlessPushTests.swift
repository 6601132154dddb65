import Testing
import WidgetModel

@testable import GatewayCore

/// No push is needless, and avoiding it loses or delays nothing that is owed.
@Suite struct NeedlessPushTests {
    private static let hook = DeliveryAddress.webhook(url: "https://hook.example")
    private static let other = DeliveryAddress.webhook(url: "https://other.example")
    private let key = ClientKey(app: "app", client: "device")
    private let day: Int64 = 86_400_000

    private static func control(_ id: String, delivery: DeliveryAddress? = nil) -> PlacedControl {
        PlacedControl(
            kind: "c", id: id, parameters: ["a": .single("1")], delivery: delivery)
    }

    // MARK: Streams

    @Test(arguments: [apns(), hook])
    func `a stream that was open before the address holds pushes back`(
        address: DeliveryAddress
    ) throws {
        var small = try SmallPushScheduler()
        small.scheduler.streamOpened(key, resuming: 1, now: small.now)
        small.register(device(delivery: [.stream, address]))
        for round in 0..<3 {
            try small.change("1")
            small.acknowledge()
            small.wait(30_000)
            #expect(small.orders().isEmpty, "round \(round)")
            // The address goes and comes again.
            small.register(device(delivery: [.stream]))
            small.register(device(delivery: [.stream, address]))
        }
        try small.change("1")
        let order = try small.next(after: 20_000)
        #expect(order.address == address)
    }

    @Test func `a stream holds back the pushes of what is added while it is open`() throws {
        var small = try SmallPushScheduler(device(delivery: [.stream, apns()]))
        small.scheduler.streamOpened(key, resuming: 1, now: small.now)
        let control = Self.control("one", delivery: apns("cc", "controls"))
        small.register(device(delivery: [.stream, apns(), Self.hook], controls: [control]))
        try small.change("1")
        #expect(small.orders().isEmpty)
        small.wait(20_000)
        #expect(Set(small.orders().map(\.address)) == [apns(), apns("cc", "controls")])
    }

    @Test func `a stream of one kind holds back the pushes of that kind, and of no other`() throws {
        let record = ClientRecord(
            client: "device",
            registration: ClientRegistration(
                platform: "iOS", widgets: [widget(["a": .single("1")]), widget(kind: "l")],
                delivery: [.stream, apns()]), attributes: .init(), since: 1)
        var small = try SmallPushScheduler(record)
        small.scheduler.streamOpened(key, kinds: ["l"], resuming: 0, now: small.now)
        try small.change("1")
        let other = small.orders().first
        #expect(other?.cause == .noStream)
        try small.finish(other)
        try small.change(entity: "F")
        #expect(small.orders().isEmpty)
        small.acknowledge()
        small.expectSilence()
        try small.change(entity: "F")
        small.wait(20_000)
        #expect(small.orders().map(\.cause) == [.notAcknowledged])
        small.scheduler.streamEnded(key, kinds: ["l"], now: small.now)
        #expect(small.scheduler.streams.isEmpty)
    }

    // MARK: Addresses that come and go

    /// Each pair is what a client has before and after it registers again.
    static let replacements:
        [([DeliveryAddress], [PlacedControl], [DeliveryAddress], [PlacedControl])] =
            [
                ([.stream], [], [.stream, apns()], []), ([.stream], [], [hook], []),
                ([.stream], [], [.stream], [control("one", delivery: apns("cc", "controls"))]),
                ([apns()], [], [apns()], [control("one", delivery: apns("cc", "controls"))]),
                ([apns()], [], [apns(), hook], []), ([hook], [], [apns(), hook], []),
                ([hook], [], [hook, apns()], []), ([apns(), hook], [], [hook], []),
                ([hook, apns()], [], [apns()], []), ([apns()], [], [apns("bb")], []),
                ([hook], [], [other], []), ([hook], [], [hook], [control("one"), control("two")]),
                ([hook], [control("one")], [hook, apns()], [control("one")]),
            ]

    @Test(arguments: replacements.indices, [false, true])
    func `an address that comes or goes tells nothing again`(index: Int, isAcknowledged: Bool)
        throws
    {
        let (before, controlsBefore, after, controlsAfter) = Self.replacements[index]
        var small = try SmallPushScheduler(device(delivery: before, controls: controlsBefore))
        try small.change("1")
        for order in small.orders() { try small.finish(order) }
        if isAcknowledged {
            small.acknowledge()
        } else {
            small.scheduler.polled(key, now: small.now)
        }
        // A stream or a poll said it, and the registry knows of the acknowledgement.
        let heard = PushScheduler.Evidence(
            confirmed: before == [.stream] || isAcknowledged ? small.head : 0, isStreaming: false)
        small.register(device(delivery: after, controls: controlsAfter), heard: heard)
        #expect(small.orders().isEmpty)
        small.expectSilence()
        try small.change("1")
        #expect(!small.orders().isEmpty)
    }

    @Test func `what was missed goes to the address that comes`() throws {
        var small = try SmallPushScheduler(device(delivery: [.stream]))
        try small.change("1")
        small.register(
            device(delivery: [.stream, apns()]),
            heard: .init(confirmed: small.head - 1, isStreaming: false))
        #expect(small.orders().count == 1)
        // While a stream says it, which is reported a moment later, the stream has its time.
        small = try SmallPushScheduler()
        try small.change("1")
        small.register(
            device(delivery: [.stream, apns()]), heard: .init(confirmed: 1, isStreaming: true))
        try small.next(after: 20_000)
    }

    @Test(arguments: [false, true])
    func `a client whose token died is told what it missed, and nothing else`(isMissed: Bool) throws
    {
        var small = try SmallPushScheduler(device())
        try small.push()
        small.scheduler.polled(key, now: small.now)
        if isMissed { try small.change("1", urgency: .high) }
        small.wait(400_000)
        for order in small.orders() { try small.finish(order, .dropAddress) }
        _ = small.scheduler.takeActions()
        let without = device(delivery: [.stream])
        small.register(without)
        // The gateway starts again meanwhile.
        small.save()
        try small.restart([without])
        for _ in 0..<9 { try small.change("9") }
        small.register(device(delivery: [apns("bb")]))
        #expect(small.orders().map { words($0.content) } == (isMissed ? ["k(a=1)"] : []))
    }

    @Test func `an address that failed leaves it to the next, once`() throws {
        var small = try SmallPushScheduler(device(delivery: [apns(), Self.hook]))
        try small.push(.dropAddress)
        let orders = small.orders()
        #expect(orders.map(\.address) == [Self.hook])
        // The dead address goes while the push is under way.
        small.register(device(delivery: [Self.hook]))
        #expect(small.orders().isEmpty)
        try small.finish(orders.first)
        small.register(device(delivery: [Self.hook]))
        small.expectSilence()
    }

    // MARK: Cursors that move with the log

    @Test func `a widget that is added is built already, and is told of what comes`() throws {
        var small = try SmallPushScheduler(device(["1"]))
        try small.change("2")
        small.register(device(["1", "2"]))
        #expect(small.orders().isEmpty)
        try small.change("2")
        #expect(small.orders().map { words($0.content) } == ["k(a=2)"])
    }

    @Test func `what is withheld stays owed when a client registers again`() throws {
        var small = try SmallPushScheduler(device(["1"]))
        try small.push()
        try small.change("1")
        small.register(device(["1", "3"], delivery: [apns(), Self.hook]))
        #expect(small.orders().isEmpty)
        small.wait(300_000)
        #expect(small.orders().map { words($0.content) } == ["k(a=1)"])
    }

    /// A window of versions that has forgotten everything that the quiet client depends on.
    private func forgetful(_ delivery: [DeliveryAddress]) throws -> SmallPushScheduler {
        var limits = CoreLimits()
        limits.versionKeysMax = 16
        var small = try SmallPushScheduler(limits: limits)
        small.register(device(["1", "2"], delivery: delivery))
        for number in 0..<100 { try small.change("other \(number)") }
        small.wait(day)
        return small
    }

    @Test(arguments: [[apns()], [hook], [apns(), hook]])
    func `that time passed is no reason`(delivery: [DeliveryAddress]) throws {
        var small = try forgetful(delivery)
        let records = [
            device(["1", "2"], delivery: delivery), device(["2", "1"], delivery: delivery),
            device(["1", "2", "other 99"], delivery: delivery), device(["1"], delivery: delivery),
            device(["1"], delivery: [apns("bb"), Self.other]),
        ]
        for record in records {
            small.register(record)
            #expect(small.orders().isEmpty)
        }
        small.save()
        try small.restart([try #require(records.last)])
        small.expectSilence()
        try small.change("1")
        #expect(small.orders().map { words($0.content) } == ["k(a=1)"])
    }

    @Test func `what a kill leaves unsaid is said after it, and only to those that it concerns`()
        throws
    {
        var small = try forgetful([Self.hook])
        let since = small.head
        small.register(device(["5"], named: "quiet", delivery: [Self.other], since: since))
        small.save()
        try small.change("1")
        _ = small.orders()
        // Neither the change nor its push was stored.
        try small.restart([
            device(["1", "2"], delivery: [Self.hook]),
            device(["5"], named: "quiet", delivery: [Self.other], since: since),
        ])
        let orders = small.orders()
        #expect(orders.map(\.address) == [Self.hook])
        #expect(orders.map { words($0.content) } == ["k(a=1)"])
        // It is not taken before the next kill, and by then the versions are forgotten.
        for number in 0..<100 { try small.change("other \(number)") }
        small.save()
        try small.restart([device(["1", "2"], delivery: [Self.hook])])
        #expect(small.orders().count == 1)
    }

    // MARK: Collapse windows

    private static func windowed(_ delivery: [DeliveryAddress]) -> ClientRecord {
        ClientRecord(
            client: "device",
            registration: ClientRegistration(
                platform: "iOS",
                widgets: [widget(["a": .single("1")], kind: "w"), widget(kind: "l")],
                delivery: delivery), attributes: .init(), since: 2)
    }

    private func windowing(
        _ window: Int64, _ delivery: [DeliveryAddress]
    ) throws -> SmallPushScheduler {
        var small = try SmallPushScheduler { $0.interval = 0 }
        let item: JSONValue = ["entity": "E", "match": ["id": "$a"]]
        try small.put(also: [kind([item], named: "w", collapse: window)])
        small.register(Self.windowed(delivery))
        return small
    }

    @Test(arguments: [[apns()], [hook]])
    func `a window makes one push of many changes, and the first goes at once`(
        delivery: [DeliveryAddress]
    ) throws {
        var small = try windowing(4_000, delivery)
        var pushes: [(at: Int64, order: DuePush)] = []
        let start = small.now
        for place in 0..<100 {
            if place < 10 { try small.change("1", urgency: place == 4 ? .high : .low) }
            small.wait(300)
            for order in small.orders() {
                pushes.append((small.now - start, order))
                try small.finish(order)
            }
        }
        try #require(pushes.count == 2)
        #expect(pushes[0].at == 300)
        #expect(pushes[1].at >= 4_000 && pushes[1].at < 4_300)
        #expect(pushes.map { $0.order.urgency } == [.low, .high])
        #expect(pushes[1].order.content.sequence == small.head)
    }

    @Test func `what waits in a window is not lost, whatever happens to the window`() throws {
        func waiting() throws -> SmallPushScheduler {
            var small = try windowing(60_000, [Self.hook])
            for _ in 0..<2 { try small.change("1") }
            try small.finish(small.orders().first)
            #expect(small.orders().isEmpty)
            return small
        }
        var killed = try waiting()
        killed.save()
        for _ in 0..<9 { try killed.change("9") }
        killed.save()
        try killed.restart([Self.windowed([Self.hook])])
        #expect(killed.orders().map { words($0.content) } == ["w(a=1)"])

        var registered = try waiting()
        registered.register(Self.windowed([Self.hook, apns()]))
        #expect(registered.orders().map { words($0.content) } == ["w(a=1)"])

        // Another change of the client goes at once, and takes along what waits.
        var other = try waiting()
        try other.change(entity: "F")
        let order = other.orders().first
        #expect(order.map { words($0.content) } == "w(a=1), l")
        try other.finish(order)
        other.expectSilence()

        var replaced = try waiting()
        try replaced.put()
        #expect(replaced.orders().isEmpty, "no kind is left that it made stale")
    }

    @Test func `a stream that opened in a window has windows of its own`() throws {
        var small = try windowing(60_000, [.stream, apns()])
        try small.change("1")
        try small.finish(small.orders().first)
        small.wait(50_000)
        small.scheduler.streamOpened(key, resuming: small.head, now: small.now)
        small.sent[key] = small.head
        try small.change("1")
        // Its window ends 50 s after that of the pushes.
        for _ in 0..<60 { small.expectSilence(1_000) }
        small.sent[key] = small.head
        for _ in 0..<20 {
            #expect(small.orders().isEmpty)
            small.wait(1_000)
        }
        small.wait(DeliveryAttempts.idInterval)
        #expect(small.orders().count == 1)
    }

    @Test func `a stream has its time from the end of the window on, when it says it`() throws {
        var small = try windowing(60_000, [.stream, apns()])
        small.scheduler.streamOpened(key, resuming: 2, now: small.now)
        try small.change("1")
        small.acknowledge()
        small.wait(1_000)
        try small.change("1")
        small.wait(59_000)
        small.expectSilence(19_999)
        var silent = small
        silent.wait(1)
        #expect(silent.orders().count == 1)
        small.acknowledge()
        small.expectSilence()
    }

    @Test func `a change that the id of the stream has not passed cannot be confirmed yet`() throws
    {
        var small = try windowing(60_000, [.stream, apns()])
        small.scheduler.streamOpened(key, resuming: 2, now: small.now)
        try small.change("1")
        small.acknowledge()
        try small.change("1")
        // It is told at once, with an id below the change that waits.
        try small.change(entity: "F")
        small.scheduler.acknowledged(key, upTo: small.head - 2, now: small.now)
        for _ in 0..<60 { small.wait(1_000) }
        small.expectSilence(19_999)
        var silent = small
        silent.wait(5_001)
        #expect(silent.orders().count == 1)
        small.acknowledge()
        small.expectSilence()
    }

    // MARK: Many at once

    private func spread(_ small: inout SmallPushScheduler, count: Int) {
        var perSecond = [small.orders().count]
        for _ in 0..<60 {
            small.wait(1_000)
            perSecond.append(small.orders().count)
        }
        #expect(perSecond.reduce(0, +) == count)
        #expect(perSecond.max() ?? 0 < count / 2)
    }

    @Test func `what tells everybody at once is spread`() throws {
        var terms = PushScheduler.Terms()
        terms.spread = .init(devicesPerSecond: 1)
        var small = try SmallPushScheduler(terms: terms)
        let records = (0..<40).map { device(named: "d\($0)", delivery: [apns("a\($0)")]) }
        for record in records { small.register(record) }
        small.save()
        try small.change("1")
        _ = small.orders()
        var killed = small
        try killed.restart(records)
        spread(&killed, count: 40)
        small.scheduler.forgetPositions(now: small.now)
        _ = small.orders()
        small.save()
        try small.restart(records)
        spread(&small, count: 40)
        var lost = try SmallPushScheduler(terms: terms)
        for record in records { lost.register(record) }
        lost.scheduler.forgetPositions(now: lost.now)
        spread(&lost, count: 40)
    }

    @Test func `a lost tail leaves it to an open stream first`() throws {
        var small = try SmallPushScheduler(device(delivery: [.stream, apns()]))
        small.scheduler.streamOpened(key, resuming: 1, now: small.now)
        small.wait(30_000)
        small.scheduler.forgetPositions(now: small.now)
        let order = try small.next(after: 20_000)
        #expect(words(order.content) == "all")
    }

    // MARK: Controls

    @Test func `controls with one address are one push, also when it is tried again`() throws {
        let ids = ["one", "two", "three", "four"]
        var small = try SmallPushScheduler(
            device(
                [], delivery: [.stream, apns("cc", "controls")],
                controls: ids.map { Self.control($0) }))
        try small.change("1")
        for verdict in [APNsReaction.Verdict.retry(.device), .delivered] {
            let orders = small.orders()
            #expect(orders.map { $0.sorts.count } == [4])
            try small.finish(orders.first, verdict)
            small.wait(120_000)
        }
        #expect(small.orders().isEmpty)
        try small.change("1")
        #expect(small.orders().count == 1)
    }
}
