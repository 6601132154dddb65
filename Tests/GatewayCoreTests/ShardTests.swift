import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct ShardTests {
    static let rule: JSONValue = ["entity": "E", "match": ["id": "$a"]]

    static func gateway(collapse: Int64 = 0, limits: CoreLimits = CoreLimits()) throws
        -> SmallGateway
    {
        SmallGateway(
            try catalog([
                kind([rule], collapse: collapse), kind([["entity": "F"]], named: "l"),
            ]), limits: limits)
    }

    static func own(_ ids: String..., name: String = "client") -> ClientRecord {
        client(ids.map { widget(["a": .single($0)]) } + [widget(kind: "l")], name: name)
    }

    @Test func `a change reaches its holders with its id and nobody else`() throws {
        var gateway = try Self.gateway()
        let one = try gateway.open(Self.own("1"), since: .after(1))
        let two = try gateway.open(Self.own("2", name: "other"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(gateway.sent(two) == [])
        let frame = try #require(gateway.shard.output.frames.first)
        #expect(frame.app == "app" && frame.cause?.time == "t" && frame.acceptedAt == 7)
        #expect(gateway.taken(one) == ["k(a=1) id 2"])
        gateway.shard.close(one)
        gateway.shard.close(one)
        try gateway.change(Change(entity: "E"))
        #expect(gateway.taken(two) == ["k id 3"])
        #expect(gateway.shard.openStreams == 1)
        #expect(!gateway.shard.isOpen(one) && gateway.shard.isOpen(two))
    }

    @Test func `a start of activities is an entry that streams hear nothing of`() throws {
        var gateway = try Self.gateway()
        let id = try gateway.open(Self.own("1"), since: .after(1))
        gateway.head += 1
        let start = try ActivityStart(
            ["id": "1", "type": "A", "channel": "c"], limits: Limits())
        gateway.apply(.start(start))
        let sent = gateway.shard.heartbeat(id)
        #expect(gateway.sent(id) == [] && sent == 2)
        // Nor is there a gap behind it.
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(gateway.taken(id) == ["k(a=1) id 3"])
    }

    @Test func `all holders of a key share one notification, signed once`() throws {
        var gateway = try Self.gateway()
        for index in 0..<5 {
            _ = try gateway.open(Self.own("1", name: "c\(index)"), since: .after(1))
        }
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(gateway.shard.output.frames.count == 1)
        #expect(gateway.shard.output.deliveries.count == 5)
    }

    @Test func `of several frames for one sequence only the last carries the id`() throws {
        var gateway = SmallGateway(
            try catalog([kind([["entity": "E", "match": ["x": "$list"]]])]))
        let own = client([widget(["list": .list(["1", "2", "3"])])])
        let id = try gateway.open(own, since: .after(1))
        try gateway.change(Change(entity: "E", attributes: ["x": ["1", "2"]]))
        #expect(gateway.sent(id) == ["k(list=1)", "k(list=2) id 2"])
        // The next change of the same turn carries its own id.
        try gateway.change(Change(entity: "E", attributes: ["x": ["3"]]))
        #expect(gateway.taken(id) == ["k(list=1)", "k(list=2) id 2", "k(list=3) id 3"])
    }

    @Test func `while a change waits the id stays below it`() throws {
        var gateway = try Self.gateway(collapse: 200)
        let id = try gateway.open(Self.own("1"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "F"))
        #expect(gateway.taken(id) == ["k(a=1) id 2", "l"])
        #expect(gateway.shard.heartbeat(id) == 2)
        #expect(gateway.shard.nextWindowEnd == 200)
        gateway.shard.endWindows(now: 200)
        #expect(gateway.taken(id) == ["k(a=1) id 4"])
        #expect(gateway.shard.heartbeat(id) == 4)
    }

    @Test func `a change that waits holds back the ids of its own holders and of nobody else`()
        throws
    {
        var gateway = try Self.gateway(collapse: 200)
        let own = try gateway.open(Self.own("1"), since: .after(1))
        let other = try gateway.open(Self.own("2", name: "other"), since: .after(1))
        let free = try gateway.open(client([widget(kind: "l")], name: "free"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "F"))
        #expect(gateway.shard.output.frames.count == 2, "with every id it is one notification")
        #expect(gateway.sent(own) == ["k(a=1) id 2", "l"])
        #expect(gateway.sent(other) == ["l id 4"])
        #expect(gateway.taken(free) == ["l id 4"])
        #expect(gateway.shard.heartbeat(own) == 2)
        // A reload says along what waits, and repeats nothing to the others.
        gateway.reload(.kind("l"))
        #expect(gateway.sent(own) == ["l, k(a=1) id 5"])
        #expect(gateway.taken(other) == ["l id 5"])
        try gateway.change(Change(entity: "F"))
        #expect(gateway.taken(free) == ["l id 6"])
        #expect(gateway.shard.heartbeat(own) == 5)
        #expect(gateway.shard.heartbeat(other) == 6)
        gateway.shard.endWindows(now: 200)
        #expect(gateway.taken(own) == [])
        #expect(gateway.shard.heartbeat(own) == 6)
    }

    @Test func `a change that waits holds back whoever comes to hold its key`() throws {
        var gateway = try Self.gateway(collapse: 200)
        let moved = try gateway.open(Self.own("2", name: "moved"), since: .after(1))
        let gone = try gateway.open(Self.own("1"), since: .after(1))
        for _ in 0..<2 { try gateway.change(Change(entity: "E", id: "1")) }
        gateway.shard.clearOutput()
        gateway.shard.registered(Self.own("2"), app: "app")
        gateway.shard.registered(Self.own("1", name: "moved"), app: "app")
        #expect(gateway.taken(moved) == ["k(a=1) id 3"])
        let late = try gateway.open(Self.own("1", name: "late"), since: .after(3))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "F"))
        #expect(gateway.sent(gone) == ["l id 5"])
        for id in [moved, late] {
            #expect(gateway.sent(id) == ["l"])
            #expect(gateway.shard.heartbeat(id) == 3)
        }
        gateway.shard.clearOutput()
        gateway.shard.endWindows(now: 200)
        #expect(gateway.sent(gone) == [])
        for id in [moved, late] { #expect(gateway.sent(id) == ["k(a=1) id 5"]) }
    }

    @Test func `a change that lacks an attribute and waits holds back all that it concerns`()
        throws
    {
        var gateway = try Self.gateway(collapse: 200)
        let one = try gateway.open(Self.own("1"), since: .after(1))
        for _ in 0..<2 { try gateway.change(Change(entity: "E")) }
        #expect(gateway.taken(one) == ["k id 2"])
        let two = try gateway.open(Self.own("2", "3", name: "two"), since: .after(3))
        let free = try gateway.open(client([widget(kind: "l")], name: "free"), since: .after(3))
        try gateway.change(Change(entity: "E"))
        try gateway.change(Change(entity: "F"))
        #expect(gateway.sent(one) == ["l"] && gateway.sent(two) == ["l"])
        #expect(gateway.taken(free) == ["l id 5"])
        #expect(gateway.shard.heartbeat(one) == 2)
        #expect(gateway.shard.heartbeat(two) == 3)
        gateway.shard.endWindows(now: 200)
        #expect(gateway.sent(one) == ["k id 5"] && gateway.sent(two) == ["k id 5"])
    }

    /// A notification is as old as the first change that waited for it, whatever came after it.
    @Test func `what a window's end tells was accepted when the first change that waited was`()
        throws
    {
        var gateway = try Self.gateway(collapse: 200)
        let id = try gateway.open(Self.own("1"), since: .after(1))
        func change(acceptedAt: Int64) throws {
            gateway.head += 1
            let decision = try gateway.decider.decide(Change(entity: "E", id: "1"), app: "app")
            gateway.shard.apply(
                LogEntry(
                    sequence: gateway.head, app: "app", acceptedAt: acceptedAt,
                    body: .change(decision, cause: nil)), now: 0)
        }
        for time: Int64 in [10, 20, 30] { try change(acceptedAt: time) }
        #expect(gateway.shard.output.frames.map(\.acceptedAt) == [10])
        #expect(gateway.taken(id).count == 1)
        gateway.shard.endWindows(now: 200)
        #expect(gateway.shard.output.frames.map(\.acceptedAt) == [20])
        #expect(gateway.taken(id) == ["k(a=1) id 4"])
    }

    @Test func `a heartbeat moves an idle stream with the head`() throws {
        var gateway = try Self.gateway()
        let id = try gateway.open(Self.own("1"), since: .after(1))
        for other in 5..<9 { try gateway.change(Change(entity: "E", id: "\(other)")) }
        #expect(gateway.taken(id) == [])
        #expect(gateway.shard.heartbeat(id) == 5)
        gateway.shard.close(id)
        #expect(gateway.shard.heartbeat(id) == nil)
    }

    @Test func `a stream opens with one catch-up that carries the position`() throws {
        var gateway = try Self.gateway(collapse: 200)
        let first = try gateway.open(Self.own("1", name: "first"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "1"))
        gateway.shard.clearOutput()
        let id = try gateway.open(Self.own("1"), since: .after(1))
        #expect(gateway.taken(id) == ["k(a=1) id 3"])
        let everything = try gateway.open(Self.own("1"), since: .everything)
        #expect(gateway.taken(everything) == ["all id 3"])
        // The other streams were notified of the waiting change already, but not the first.
        gateway.shard.endWindows(now: 200)
        #expect(gateway.sent(first) == ["k(a=1) id 3"])
        #expect(gateway.taken(id) == [])
    }

    @Test func `a slow reader gets one catch-up from what it last got`() throws {
        var gateway = try Self.gateway()
        let id = try gateway.open(Self.own("1", "2"), since: .after(1))
        gateway.shard.lagging(id, since: 1)
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "2"))
        gateway.reload(.kind("l"))
        #expect(gateway.taken(id) == [])
        #expect(gateway.shard.heartbeat(id) == nil)
        gateway.shard.recovered(id)
        gateway.shard.recovered(id)
        #expect(gateway.taken(id) == ["l, k(a=1), k(a=2) id 4"])
    }

    @Test func `open streams follow a new registration at once`() throws {
        var gateway = try Self.gateway()
        let id = try gateway.open(Self.own("1"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "2"))
        gateway.shard.registered(Self.own("2"), app: "app")
        #expect(gateway.taken(id) == ["k(a=2) id 2"])
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "2"))
        #expect(gateway.taken(id) == ["k(a=2) id 4"])
        gateway.shard.removed(client: "client", app: "app")
        #expect(gateway.shard.output.ended == [id])
    }

    /// A connection may close turns after its client was removed, and the client may be back by
    /// then.
    @Test func `nothing that comes after its client's removal is said on a stream`() throws {
        var gateway = try Self.gateway(collapse: 200)
        let id = try gateway.open(Self.own("1"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "1"))
        gateway.shard.removed(client: "client", app: "app")
        #expect(gateway.shard.output.ended == [id])
        try gateway.change(Change(entity: "F"))
        gateway.reload(.client("client"))
        gateway.shard.endWindows(now: 200)
        gateway.put(try catalog([kind([Self.rule, ["entity": "F"]])]))
        gateway.shard.registered(Self.own("1", "2"), app: "app")
        #expect(gateway.taken(id) == ["k(a=1) id 2"])
        gateway.shard.lagging(id, since: 2)
        gateway.shard.recovered(id)
        gateway.shard.voidCursors()
        gateway.shard.removed(client: "client", app: "app")
        #expect(gateway.shard.output.isEmpty)
        #expect(gateway.shard.heartbeat(id) == nil && gateway.shard.isOpen(id))
        gateway.shard.close(id)
        #expect(gateway.shard.openStreams == 0)
        let next = try gateway.open(Self.own("1"), since: .after(6))
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(gateway.taken(next) == ["k(a=1) id 7"])
    }

    /// The shard gets the registration that opened the stream, or an older one that the caller
    /// replaces by the current one.
    @Test func `a stream is told nothing of the registration that it was opened by`() throws {
        var gateway = try Self.gateway(collapse: 200)
        let record = Self.own("1")
        let id = try gateway.open(record, since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        // This change waits, so the id stays below the next one.
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "F"))
        #expect(gateway.taken(id) == ["k(a=1) id 2", "l"])
        gateway.shard.registered(record, app: "app")
        #expect(gateway.taken(id) == [])
        gateway.shard.endWindows(now: 200)
        #expect(gateway.taken(id) == ["k(a=1) id 4"])
    }

    @Test func `a stream goes by the attributes of the token presented last`() throws {
        var gateway = SmallGateway(
            try catalog([kind([["entity": "E", "match": ["h": "$client.h"]]])]))
        func change(_ household: String) -> Change {
            Change(entity: "E", attributes: ["h": [household]])
        }
        func presenting(_ token: [String: [String]]) -> ClientRecord {
            ClientRecord(
                client: "client",
                registration: client([widget()]).registration,
                attributes: ClientAttributes(token: token))
        }
        let id = try gateway.open(presenting(["h": ["7"]]), since: .after(1))
        gateway.shard.registered(presenting(["h": ["8"]]), app: "app")
        try gateway.change(change("7"))
        try gateway.change(change("8"))
        #expect(gateway.taken(id) == ["k id 3"])
        gateway.shard.registered(presenting([:]), app: "app")
        try gateway.change(change("7"))
        try gateway.change(change("8"))
        #expect(gateway.taken(id) == [])
    }

    /// The frames of waiting changes carried the catalog's id, and the frame after them named what
    /// the catalog made stale. A client cut off in between had an id that covered something it was
    /// not notified of.
    @Test func `the id of a catalog comes after everything it makes stale`() throws {
        var gateway = try Self.gateway(collapse: 200)
        let id = try gateway.open(Self.own("1"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "1"))
        gateway.shard.clearOutput()
        gateway.put(
            try catalog([kind([Self.rule]), kind([["entity": "F"], ["entity": "E"]], named: "l")]))
        #expect(gateway.taken(id) == ["k(a=1) id 3", "l id 4"])
        #expect(gateway.shard.nextWindowEnd == nil)
    }

    @Test func `a catalog keeps the windows of rules that it leaves as they are`() throws {
        var gateway = try Self.gateway(collapse: 200)
        let id = try gateway.open(Self.own("1"), since: .after(1))
        for _ in 0..<2 { try gateway.change(Change(entity: "E", id: "1")) }
        #expect(gateway.taken(id) == ["k(a=1) id 2"])
        // The kept rules have other slots.
        gateway.put(
            try catalog([
                kind([["entity": "E"]], named: "i"), kind([Self.rule], collapse: 200),
                kind([["entity": "F"]], named: "l"),
            ]))
        #expect(gateway.taken(id) == [])
        #expect(gateway.shard.heartbeat(id) == 2)
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(gateway.taken(id) == [])
        gateway.shard.endWindows(now: 200)
        #expect(gateway.taken(id) == ["k(a=1) id 5"])
        #expect(gateway.shard.nextWindowEnd == 400)
    }

    @Test func `a catalog with a new rule says along what waits by another, and says it once`()
        throws
    {
        var gateway = try Self.gateway(collapse: 200)
        let id = try gateway.open(Self.own("1"), since: .after(1))
        let other = try gateway.open(
            client([widget(["a": .single("1")])], name: "other"), since: .after(1))
        for _ in 0..<2 { try gateway.change(Change(entity: "E", id: "1")) }
        gateway.shard.clearOutput()
        gateway.put(
            try catalog([
                kind([Self.rule], collapse: 200),
                kind([["entity": "F"], ["entity": "E"]], named: "l"),
            ]))
        #expect(gateway.sent(id) == ["l, k(a=1) id 4"])
        #expect(gateway.taken(other) == [])
        #expect(gateway.shard.heartbeat(other) == 2)
        gateway.shard.endWindows(now: 200)
        #expect(gateway.sent(id) == [])
        #expect(gateway.sent(other) == ["k(a=1) id 4"])
    }

    @Test func `an operator's reload says along what waits, and says it once`() throws {
        var gateway = try Self.gateway(collapse: 200)
        let id = try gateway.open(Self.own("1"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "1"))
        gateway.shard.clearOutput()
        gateway.reload(.kind("l"))
        #expect(gateway.taken(id) == ["l, k(a=1) id 4"])
        gateway.shard.endWindows(now: 200)
        #expect(gateway.taken(id) == [])
        gateway.reload(.everything)
        #expect(gateway.taken(id) == ["all id 5"])
    }

    @Test func `an operator's reload of a client is said on its streams alone`() throws {
        var gateway = try Self.gateway(collapse: 200)
        let id = try gateway.open(Self.own("1"), since: .after(1))
        let second = try gateway.open(Self.own("1"), since: .after(1), kinds: ["k"])
        let other = try gateway.open(
            client([widget(["a": .single("1")])], name: "other"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "1"))
        gateway.shard.clearOutput()
        gateway.reload(.client("client"))
        #expect(gateway.sent(id) == ["all id 4"])
        #expect(gateway.sent(second) == ["k id 4"])
        #expect(gateway.taken(other) == [])
        gateway.shard.endWindows(now: 200)
        #expect(gateway.sent(id) == [], "what waited was said along")
        #expect(gateway.taken(other) == ["k(a=1) id 4"])
        gateway.reload(.client("nobody"))
        #expect(gateway.taken(id) == [] && gateway.taken(other) == [])
    }

    @Test func `entries seen before change nothing`() throws {
        var gateway = try Self.gateway()
        let id = try gateway.open(Self.own("1"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        gateway.shard.clearOutput()
        let decision = try gateway.decider.decide(Change(entity: "E", id: "1"), app: "app")
        gateway.apply(.change(decision, cause: nil))
        #expect(gateway.taken(id) == [])
        #expect(gateway.shard.position == 2)
    }

    @Test func `a gap makes everything stale, for it may concern anybody`() throws {
        var gateway = try Self.gateway(collapse: 200)
        let id = try gateway.open(Self.own("1"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "1"))
        gateway.shard.clearOutput()
        gateway.head += 2
        try gateway.change(Change(entity: "F"))
        #expect(gateway.taken(id) == ["all id 5", "l id 6"])
        #expect(StalenessTests.poll(gateway, Self.own("1"), .after(4)) == "all")
        #expect(StalenessTests.poll(gateway, Self.own("1"), .after(5)) == "l")
    }

    /// The id of a stream on a slower shard went back to the position of that shard.
    @Test func `a client ahead of its shard keeps its id and is told nothing twice`() throws {
        var gateway = try Self.gateway()
        let id = try gateway.open(Self.own("1"), since: .after(3))
        #expect(gateway.shard.heartbeat(id) == 3)
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(gateway.taken(id) == [])
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(gateway.taken(id) == ["k(a=1) id 4"])
    }

    @Test func `a key nobody holds opens no window`() throws {
        var gateway = try Self.gateway(collapse: 200)
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(gateway.shard.nextWindowEnd == nil)
        _ = try gateway.open(Self.own("2"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(gateway.shard.nextWindowEnd == nil)
        try gateway.change(Change(entity: "E"))
        #expect(gateway.shard.nextWindowEnd == 200)
    }

    @Test func `keys beyond the bound on windows go out at once`() throws {
        var limits = CoreLimits()
        limits.collapseKeysMax = 1
        var gateway = try Self.gateway(collapse: 200, limits: limits)
        let id = try gateway.open(Self.own("1", "2"), since: .after(1))
        for id in ["1", "2", "2"] { try gateway.change(Change(entity: "E", id: id)) }
        #expect(gateway.taken(id) == ["k(a=1) id 2", "k(a=2) id 3", "k(a=2) id 4"])
    }

    @Test func `a slot used again belongs to the new stream only`() throws {
        var gateway = try Self.gateway()
        let old = try gateway.open(Self.own("1"), since: .after(1))
        gateway.shard.close(old)
        let new = try gateway.open(Self.own("2"), since: .after(1))
        #expect(old.slot == new.slot && old != new)
        gateway.shard.lagging(old, since: 0)
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "2"))
        #expect(gateway.taken(new) == ["k(a=2) id 3"])
    }

    @Test func `an app without a catalog opens no stream`() throws {
        var gateway = try Self.gateway()
        let opened = gateway.shard.open(Self.own(), app: "other", since: .everything, kinds: nil)
        #expect(opened == nil)
    }
}

@Suite struct SubscriptionIndexTests {
    static func key(_ name: String) throws -> BoundValues {
        let rules = try ruleSet([["entity": "E", "match": ["id": "$a"]]])
        return BoundValues(rule: rules.rules[0], positions: [.value(name)])
    }

    @Test func `dead holders are swept when they are the majority and the last takes the list`()
        throws
    {
        let rules = try ruleSet([["entity": "E", "match": ["id": "$a"]]]).rules
        var index = SubscriptionIndex(rules: rules)
        let key = try Self.key("1")
        for stream in 0..<100 {
            index.insert(.init(stream: UInt32(stream), generation: 1), rule: 0, values: key)
        }
        func count() -> Int {
            var count = 0
            index.visitHolders(rule: 0, values: key) { count += $0.count }
            return count
        }
        for ended in 1...60 {
            index.end(rule: 0, values: key) { $0.stream >= UInt32(ended) }
            // There are never more dead entries than live ones, and no live one is lost.
            #expect(count() >= 100 - ended && count() <= 2 * (100 - ended) + 1)
        }
        for ended in 61...100 { index.end(rule: 0, values: key) { $0.stream >= UInt32(ended) } }
        #expect(count() == 0)
        let isHeld = index.isHeld(rule: 0, values: key)
        #expect(!isHeld)
        index.end(rule: 0, values: key) { _ in true }
    }

    @Test func `a broad key reaches every agreeing key and an exact one its own`() throws {
        let rule = try ruleSet([["entity": "E", "match": ["id": "$a", "x": "$b"]]]).rules[0]
        var index = SubscriptionIndex(rules: [rule])
        for (stream, values) in [["1", "2"], ["1", "3"], ["2", "2"]].enumerated() {
            index.insert(
                .init(stream: UInt32(stream), generation: 0), rule: 0,
                values: BoundValues(rule: rule, positions: values.map { .value($0) }))
        }
        func reached(_ positions: [BoundValues.Position]) -> [UInt32] {
            var streams: [UInt32] = []
            let values = BoundValues(rule: rule, positions: positions)
            index.visitHolders(rule: 0, values: values) { streams += $0.map(\.stream) }
            let isHeld = index.isHeld(rule: 0, values: values)
            #expect(isHeld == !streams.isEmpty)
            return streams.sorted()
        }
        #expect(reached([.value("1"), .missing]) == [0, 1])
        #expect(reached([.missing, .value("2")]) == [0, 2])
        #expect(reached([.missing, .missing]) == [0, 1, 2])
        #expect(reached([.value("2"), .value("2")]) == [2])
        #expect(reached([.value("3"), .missing]) == [])
    }
}
