import CatalogModel
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
        #expect(gateway.shard.heartbeat(one) == nil)
        gateway.shard.removed(client: "other", app: "app")
        gateway.shard.close(two)
        #expect(gateway.shard.openStreams == 0)
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
        let free = try gateway.open(client([widget(kind: "l")], name: "free"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "F"))
        #expect(gateway.shard.output.frames.count == 2, "with every id it is one notification")
        #expect(gateway.sent(free) == ["l id 4"])
        #expect(gateway.taken(id) == ["k(a=1) id 2", "l"])
        #expect(gateway.shard.heartbeat(id) == 2)
        #expect(gateway.shard.nextWindowEnd == 200)
        gateway.shard.endWindows(now: 200)
        #expect(gateway.taken(id) == ["k(a=1) id 4"])
        #expect(gateway.shard.heartbeat(id) == 4)
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

    @Test func `an operator's reload says along what waits, and says it once`() throws {
        var gateway = try Self.gateway(collapse: 200)
        let id = try gateway.open(Self.own("1"), since: .after(1))
        let other = try gateway.open(Self.own("1", name: "other"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "1"))
        gateway.shard.clearOutput()
        gateway.reload(.client("client"))
        #expect(gateway.sent(id) == ["all id 4"])
        #expect(gateway.taken(other) == [], "it is another client's")
        gateway.shard.endWindows(now: 200)
        #expect(gateway.sent(id) == [])
        #expect(gateway.taken(other) == ["k(a=1) id 4"])
    }

    @Test func `entries seen before change nothing`() throws {
        var gateway = try Self.gateway()
        let id = try gateway.open(Self.own("1"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        gateway.shard.clearOutput()
        let decision = try gateway.decider.decide(Change(entity: "E", id: "1"), app: "app")
        gateway.apply(.change(decision, cause: nil))
        // Nor does the recovery of a stream that does not lag.
        gateway.shard.recovered(id)
        #expect(gateway.taken(id) == [])
        #expect(gateway.shard.position == 2)
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
        // With holders that stay, the key does not go with the stream.
        for name in ["b", "c"] {
            _ = try gateway.open(Self.own("1", name: name), since: .after(1))
        }
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

@Suite struct DeliveryTests {
    /// Covers more streams than are prepared at a time, with several notifications in one turn.
    @Test func `many streams get every notification of a turn in order`() throws {
        var gateway = try ShardTests.gateway()
        let count = 200
        var streams: [StreamID] = []
        for index in 0..<count {
            // Every third client also holds another key, and every fifth holds only that one.
            let ids = index % 5 == 0 ? ["2"] : index % 3 == 0 ? ["1", "2"] : ["1"]
            let own = client(
                ids.map { widget(["a": .single($0)]) } + [widget(kind: "l")], name: "c\(index)")
            streams.append(try gateway.open(own, since: .after(1)))
        }
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "2"))
        try gateway.change(Change(entity: "F"))
        for (index, stream) in streams.enumerated() {
            let one = index % 5 == 0 ? [] : ["k(a=1) id 2"]
            let two = index % 5 == 0 || index % 3 == 0 ? ["k(a=2) id 3"] : []
            #expect(gateway.sent(stream) == one + two + ["l id 4"], "stream \(index)")
        }
        #expect(gateway.shard.output.frames.count == 3)
        #expect(gateway.shard.output.touched.count == count)
        gateway.shard.clearOutput()
        try gateway.change(Change(entity: "F"))
        #expect(gateway.shard.output.deliveries.count == count)
    }

    /// Four streams of one client close from both ends and from the middle, and the others are
    /// still found when the client registers anew.
    @Test(arguments: [[0, 1, 2, 3], [3, 2, 1, 0], [1, 2, 0, 3], [2, 0, 3, 1]])
    func `a client's streams close in any order`(order: [Int]) throws {
        var gateway = try ShardTests.gateway()
        let streams = try (0..<4).map { _ in
            try gateway.open(ShardTests.own("1"), since: .after(1))
        }
        var open = Set(streams)
        for place in order {
            gateway.reload(.client("client"))
            let told = gateway.shard.output.touched.map { $0.stream }
            #expect(told == streams.filter(open.contains))
            gateway.shard.clearOutput()
            gateway.shard.close(streams[place])
            open.remove(streams[place])
        }
        gateway.reload(.client("client"))
        #expect(gateway.shard.output.isEmpty)
    }
}

@Suite struct AppRemovalTests {
    private static func declared(collapse: Int64 = 0) throws -> Catalog {
        try catalog([kind([["entity": "E", "match": ["id": "$a"]]], collapse: collapse)])
    }

    @Test func `a removed app's streams end, and its place is the next app's`() throws {
        var gateway = SmallGateway(try Self.declared(collapse: 200))
        let first = try gateway.open(client([widget(["a": .single("1")])]), since: .after(1))
        let second = try gateway.open(
            client([widget(["a": .single("2")])], name: "b"), since: .after(1))
        for _ in 0..<2 { try gateway.change(Change(entity: "E", id: "1")) }
        gateway.shard.clearOutput()
        gateway.remove()
        #expect(gateway.shard.output.ended == [first, second])
        #expect(gateway.shard.output.frames.isEmpty)
        #expect(gateway.shard.nextWindowEnd == nil, "what waited is nobody's any more")
        #expect(gateway.shard.ruleSet(of: "app") == nil)
        #expect(gateway.shard.windows.isEmpty)
        #expect(gateway.shard.poll(client([]), app: "app", since: .everything, kinds: nil) == nil)
        gateway.shard.clearOutput()
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(gateway.shard.output.isEmpty)
        // The first stream comes back before the last has closed, and gets a place of its own.
        let again = try Self.declared()
        gateway.put(again)
        let third = try gateway.open(
            client([widget(["a": .single("1")])], name: "c"), since: .after(gateway.head))
        #expect(gateway.shard.apps.count == 2)
        gateway.shard.close(first)
        gateway.shard.close(second)
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(gateway.taken(third) == ["k(a=1) id \(gateway.head)"])
        // Removing and putting the app again, however often, takes no more places.
        gateway.shard.close(third)
        for _ in 0..<10 {
            gateway.remove()
            gateway.put(again)
        }
        #expect(gateway.shard.apps.count == 2)
        #expect(gateway.shard.openStreams == 0)
    }

    @Test func `a cursor from before an app was removed makes everything stale`() throws {
        var gateway = SmallGateway(try Self.declared())
        try gateway.change(Change(entity: "E", id: "1"))
        let cursor = gateway.head
        gateway.remove()
        try gateway.change(Change(entity: "E", id: "1"))
        let between = gateway.head
        gateway.put(try Self.declared())
        let record = client([widget(["a": .single("1")])])
        for point in [cursor, between] {
            let stale = gateway.shard.poll(record, app: "app", since: .after(point), kinds: nil)
            #expect(stale?.names.map(\.kind) == ["k"], "since \(point)")
        }
        let fresh = gateway.shard.poll(
            record, app: "app", since: .after(gateway.head), kinds: nil)
        #expect(fresh?.isEmpty == true)
    }

    @Test func `whoever is pushed to is forgotten with the app`() throws {
        var small = try SmallPushScheduler(device(named: "phone"))
        small.head += 1
        small.apply(.removal)
        #expect(small.scheduler.clients.isEmpty)
        #expect(small.scheduler.lanes.allSatisfy { $0 == nil })
        let kept = small.scheduler.takeChanged(limit: 10, now: small.now, wall: 0)
        #expect(kept.map(\.key.client) == ["phone"] && kept.allSatisfy { $0.saved == nil })
    }
}
