import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct RebuiltTests {
    /// Random changes, exact, broad and of other kinds; the latest that hit a widget by its
    /// definition, within any bounds, is what is found, unless a later one beyond them hit it too.
    @Test(arguments: 0..<40)
    func `the latest change of a widget is the one that hit it`(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let rules: [JSONValue] = [["entity": "E", "match": ["id": "$a", "x": "$client.c"]]]
        var gateway = SmallGateway(
            try catalog([kind(rules), kind([["entity": "F"]], named: "l")]))
        let ruleSet = try #require(gateway.shard.ruleSet(of: "app"))
        let attributes = ["c": ["1", "2"]]
        let widgets = ["1", "2", nil].map { value in
            widget(value.map { ["a": .single($0)] } ?? [:])
        }
        var hitBy: [[UInt64]] = widgets.map { _ in [] }
        for _ in 0..<60 {
            var change = Change(
                entity: random.pick(["E", "E", "F"]), id: random.pick(["1", "2", "3", nil]))
            if random.happens(70) { change.attributes["x"] = [random.pick(["1", "2", "3"])] }
            try gateway.change(change)
            for (place, widget) in widgets.enumerated()
            where try hits(ruleSet, change, widget, attributes: attributes) {
                hitBy[place].append(gateway.head)
            }
            let (one, other) = (random.below(70), random.below(70))
            let (after, upTo) = (UInt64(min(one, other)), UInt64(max(one, other)))
            for (place, widget) in widgets.enumerated() {
                let latest = gateway.shard.latestChange(
                    of: widget, of: client(widgets, attributes: attributes), app: "app",
                    after: after, upTo: upTo)
                if let last = hitBy[place].last, last > after, last <= upTo {
                    #expect(latest == last)
                } else if let latest {
                    // An older one is known where the later hit another key of the widget.
                    #expect(hitBy[place].contains(latest) && latest > after && latest <= upTo)
                }
            }
        }
        let stranger = client([], attributes: attributes)
        #expect(
            gateway.shard.latestChange(
                of: widget(kind: "unknown"), of: stranger, app: "app", after: 0, upTo: 100) == nil)
        #expect(
            gateway.shard.latestChange(
                of: widgets[0], of: stranger, app: "other", after: 0, upTo: 100) == nil)
    }

    /// What waited is as old as the first that waited, whatever came after it.
    @Test func `what a window's end tells was accepted when the first change that waited was`()
        throws
    {
        var gateway = try ShardTests.gateway(collapse: 200)
        let id = try gateway.open(ShardTests.own("1"), since: .after(1))
        func change(acceptedAt: Int64) throws {
            gateway.head += 1
            let decision = try gateway.decider.decide(Change(entity: "E", id: "1"), app: "app")
            gateway.shard.apply(
                LogEntry(
                    sequence: gateway.head, app: "app", acceptedAt: acceptedAt,
                    body: .change(decision, causeTime: nil)), now: 0)
        }
        for time: Int64 in [10, 20, 30] { try change(acceptedAt: time) }
        #expect(gateway.shard.output.frames.map(\.acceptedAt) == [10])
        #expect(gateway.taken(id).count == 1)
        gateway.shard.endWindows(now: 200)
        #expect(gateway.shard.output.frames.map(\.acceptedAt) == [20])
        #expect(gateway.taken(id) == ["k(a=1) id 4"])
    }
}
