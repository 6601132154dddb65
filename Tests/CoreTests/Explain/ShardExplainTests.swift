import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct ShardExplainTests {
    /// Returns how the client's streams are notified of a change to item 1.
    private func telling(
        _ gateway: SmallGateway, at sequence: UInt64?, client name: String = "client"
    ) throws -> StreamDeliveryState? {
        let ruleSet = try #require(gateway.shard.ruleSet(of: "app"))
        let keys = try ruleSet.decide(Change(entity: "E", id: "1"), limits: Limits()).keys
        let tellings =
            sequence.map { gateway.shard.tellings(of: keys, by: ruleSet, at: $0) }
            ?? gateway.shard.forecast(of: keys, by: ruleSet, now: gateway.now)
        let record = client([widget(["a": .single("1")])], name: name)
        let hold = try #require(ChangeReach([keys], by: ruleSet).holds(of: record).first)
        return gateway.shard.telling(
            to: name, app: "app", kind: "k", tellings: tellings, of: hold.keys, at: sequence)
    }

    private func gateway(collapse: Int64 = 100) throws -> SmallGateway {
        SmallGateway(
            try catalog([kind([["entity": "E", "match": ["id": "$a"]]], collapse: collapse)]))
    }

    private let follower = client([widget(["a": .single("1")])])

    @Test func `the first goes at once, the others wait and are said by the last`() throws {
        var gateway = try gateway()
        _ = try gateway.open(follower, since: .after(1))
        #expect(try telling(gateway, at: nil) == .sent)
        for _ in 0..<3 { try gateway.change(Change(entity: "E", id: "1")) }
        #expect(try telling(gateway, at: 2) == .sent)
        #expect(try telling(gateway, at: 3) == .waits(until: 100))
        #expect(try telling(gateway, at: 4) == .waits(until: 100))
        #expect(try telling(gateway, at: nil) == .waits(until: 100))
        gateway.now = 100
        gateway.shard.endWindows(now: 100)
        #expect(try telling(gateway, at: 2) == .sent)
        #expect(try telling(gateway, at: 3) == .collapsed(into: 4))
        #expect(try telling(gateway, at: 4) == .sent)
        #expect(try telling(gateway, at: nil) == .waits(until: 200), "the next one")
    }

    @Test func `what waits is said by a change that lacks its attribute and so reaches everybody`()
        throws
    {
        var gateway = try gateway()
        _ = try gateway.open(follower, since: .after(1))
        for _ in 0..<2 { try gateway.change(Change(entity: "E", id: "1")) }
        #expect(try telling(gateway, at: 3) == .waits(until: 100))
        try gateway.change(Change(entity: "E"))
        #expect(try telling(gateway, at: 3) == .collapsed(into: 4))
        #expect(try telling(gateway, at: 2) == .sent)
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(try telling(gateway, at: 5) == .waits(until: 100))
        gateway.now = 100
        gateway.shard.endWindows(now: 100)
        #expect(try telling(gateway, at: 3) == .collapsed(into: 4), "that came first")
        #expect(try telling(gateway, at: 5) == .sent)
    }

    @Test func `what waits goes on waiting under a catalog that keeps the rule`() throws {
        var gateway = try gateway()
        _ = try gateway.open(follower, since: .after(1))
        let ruleSet = try #require(gateway.shard.ruleSet(of: "app"))
        let keys = try ruleSet.decide(Change(entity: "E", id: "1"), limits: Limits()).keys
        for _ in 0..<2 { try gateway.change(Change(entity: "E", id: "1")) }
        let kept = kind([["entity": "E", "match": ["id": "$a"]]], collapse: 100)
        gateway.put(try catalog([kind([["entity": "F"]], named: "i"), kept]))
        let tellings = gateway.shard.tellings(of: keys, by: ruleSet, at: 3)
        #expect(tellings.values.contains(.waits(until: 100)))
    }

    @Test func `without a window all are sent`() throws {
        var gateway = try gateway(collapse: 0)
        _ = try gateway.open(follower, since: .after(1))
        for _ in 0..<3 { try gateway.change(Change(entity: "E", id: "1")) }
        #expect(try telling(gateway, at: 3) == .sent)
        #expect(try telling(gateway, at: 3, client: "stranger") == nil)
    }

    @Test func `who comes while a change waits is told at once`() throws {
        var gateway = try gateway()
        _ = try gateway.open(follower, since: .after(1))
        for _ in 0..<2 { try gateway.change(Change(entity: "E", id: "1")) }
        _ = try gateway.open(client([widget(["a": .single("1")])], name: "late"), since: .after(1))
        #expect(try telling(gateway, at: 3) == .waits(until: 100))
        #expect(try telling(gateway, at: 3, client: "late") == .sent)
        gateway.reload(.everything)
        #expect(try telling(gateway, at: 3) == .sent, "an operator's reload says all")
    }

    @Test func `a slow reader is told when it reads`() throws {
        var gateway = try gateway(collapse: 0)
        let stream = try gateway.open(follower, since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        gateway.shard.lagging(stream, since: 2)
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(try telling(gateway, at: 2) == .sent)
        #expect(try telling(gateway, at: 3) == .lagging)
        #expect(try telling(gateway, at: nil) == .lagging)
        gateway.shard.recovered(stream)
        #expect(try telling(gateway, at: 3) == .sent)
    }

    @Test func `a stream of other kinds says nothing of this one`() throws {
        var gateway = try gateway()
        _ = try gateway.open(follower, since: .after(1), kinds: ["l"])
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(try telling(gateway, at: 2) == nil)
        #expect(gateway.shard.streams(of: "client", app: "app").map(\.kinds) == [["l"]])
    }

    @Test func `everything a client holds has its latest change, and what that was`() throws {
        var gateway = try gateway()
        let record = client(
            [widget(["a": .single("1")]), widget(["a": .single("2")]), widget(kind: "ghost")],
            recommendations: [RecommendationSet(kind: "k", items: [])])
        _ = try gateway.open(record, since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "1"))
        var items = try #require(gateway.shard.items(of: record, app: "app")).items
        #expect(items.map(\.version) == [3, 1])
        #expect(items.map(\.cause) == [.change, .catalog])
        #expect(items.map(\.telling) == [.waits(until: 100), .sent])
        gateway.reload(.kind("k"))
        items = try #require(gateway.shard.items(of: record, app: "app")).items
        #expect(items.map(\.version) == [4, 4])
        #expect(items.map(\.cause) == [.reload, .reload])
        gateway.reload(.client("client"))
        gateway.reload(.client("other"))
        items = try #require(gateway.shard.items(of: record, app: "app")).items
        #expect(items.map(\.version) == [5, 5] && items.map(\.cause) == [.reload, .reload])
    }

    @Test func `the earliest change still owed is known while it is remembered`() throws {
        let ruleSet = try ruleSet([["entity": "E", "match": ["id": "$a"]]])
        let keys = try ruleSet.decide(Change(entity: "E", id: "1"), limits: Limits()).keys
        let names = keys.map { ruleSet.recentKey($0.values.hash) }
        var recent = RecentChanges(raisesMax: 8)
        for sequence: UInt64 in 2...4 {
            recent.note(keys, by: ruleSet, at: sequence, acceptedAt: Int64(sequence) * 10)
        }
        #expect(recent.earliest(of: names, after: 1)?.sequence == 2)
        #expect(recent.earliest(of: names, after: 2)?.acceptedAt == 30)
        #expect(recent.earliest(of: names, after: 4) == nil)
        for sequence: UInt64 in 5...9 {
            recent.note(keys, by: ruleSet, at: sequence, acceptedAt: 0)
        }
        #expect(recent.earliest(of: names, after: 2) == nil, "it cannot be told any more")
        #expect(recent.earliest(of: names, after: 8)?.sequence == 9)
    }
}
