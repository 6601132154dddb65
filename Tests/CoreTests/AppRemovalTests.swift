import CatalogModel
import Testing
import WidgetModel

@testable import GatewayCore

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
