import CatalogModel
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct RecentChangesTests {
    private static func hit(_ sequence: UInt64) -> RecentChanges.Hit {
        .init(sequence: sequence, acceptedAt: Int64(sequence) * 10)
    }

    /// Compares keys that share buckets, and rings of every fill, with a list of all noted changes.
    @Test(arguments: 0..<60)
    func `random raises agree with a list of the latest ones`(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        let raisesMax = random.pick([1, 2, 8, 64, 1_024])
        var recent = RecentChanges(raisesMax: raisesMax)
        var raises: [(key: UInt64, sequence: UInt64)] = []
        let keys = (0..<6).map { UInt64($0 % 3) + UInt64($0) << 32 }
        var sequence: UInt64 = 0
        for step in 0..<400 {
            sequence += UInt64(random.below(3) + 1)
            for _ in 0..<random.below(3) {
                let key = random.pick(keys)
                recent.note(key, Self.hit(sequence))
                raises.append((key, sequence))
            }
            let asked = random.pick(keys)
            let floor = UInt64(random.below(Int(sequence) + 2))
            let last = random.happens(30) ? .max : floor + UInt64(random.below(20))
            let limit = random.below(5)
            let expected = raises.suffix(raisesMax).reversed().filter {
                $0.key == asked && $0.sequence > floor && $0.sequence <= last
            }
            #expect(
                recent.hits(of: asked, after: floor, upTo: last, limit: limit)
                    == expected.prefix(limit).map { Self.hit($0.sequence) }, "step \(step)")
        }
    }

    /// Random changes: exact, broad and of other kinds. The changes that hit a widget by definition
    /// must be those that a polling client is notified of, the latest up to its cursor.
    @Test(arguments: 0..<40)
    func `a poll tells of the latest change that hit a widget`(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        let declared = try catalog([
            kind([["entity": "E", "match": ["id": "$a", "x": "$client.c"]]]),
            kind([["entity": "F"]], named: "l"),
        ])
        let ruleSet = RuleSet(declared, sequence: 1, replacing: nil, hash: testHash)
        let attributes = ["c": ["1", "2"]]
        let widgets = ["1", "2", nil].map { widget($0.map { ["a": .single($0)] } ?? [:]) }
        var recent = RecentChanges()
        var hitBy: [[UInt64]] = widgets.map { _ in [] }
        for sequence in UInt64(2)..<80 {
            var change = Change(
                entity: random.pick(["E", "E", "F"]), id: random.pick(["1", "2", "3", nil]))
            if random.happens(70) { change.attributes["x"] = [random.pick(["1", "2", "3"])] }
            recent.note(
                try ruleSet.decide(change, limits: Limits()).keys, by: ruleSet, at: sequence,
                acceptedAt: Int64(sequence) * 10)
            for (place, widget) in widgets.enumerated()
            where try hits(ruleSet, change, widget, attributes: attributes) {
                hitBy[place].append(sequence)
            }
            let (one, other) = (UInt64(random.below(90)), UInt64(random.below(90)))
            for (place, widget) in widgets.enumerated() {
                let expected = hitBy[place].last { $0 > min(one, other) && $0 <= max(one, other) }
                let told = recent.told(
                    ruleSet.toldKeys(
                        of: widget, attributes: attributes, upTo: max(one, other)),
                    after: min(one, other))
                #expect(told.last == expected.map(Self.hit))
            }
        }
        let unknown = widget(kind: "unknown")
        #expect(ruleSet.toldKeys(of: unknown, attributes: attributes, upTo: 9).isEmpty)
    }

    /// A notification for several changes counts for the latest. A waiting change does not count
    /// yet.
    @Test func `a stream tells of what it was notified`() throws {
        for (collapse, expected) in [(Int64(0), [2, 3, 4, 5, 6, 7] as [UInt64]), (200, [2, 5])] {
            var gateway = try ShardTests.gateway(collapse: collapse)
            let ruleSet = try #require(gateway.shard.ruleSet(of: "app"))
            var recent = RecentChanges()
            _ = try gateway.open(ShardTests.own("1"), since: .after(1))
            for sequence in UInt64(2)...7 {
                let change = Change(entity: "E", id: "1")
                recent.note(
                    try ruleSet.decide(change, limits: Limits()).keys, by: ruleSet, at: sequence,
                    acceptedAt: Int64(sequence) * 10)
                try gateway.change(change)
                if sequence == 5 { gateway.shard.endWindows(now: 200) }
            }
            func told(after floor: UInt64) -> [UInt64] {
                recent.told(
                    gateway.shard.toldKeys(
                        of: widget(["a": .single("1")]), attributes: [:], app: "app",
                        after: floor), after: floor
                ).map(\.sequence)
            }
            #expect(told(after: 1) == expected)
            #expect(told(after: 2) == Array(expected.dropFirst()))
        }
        let gateway = try ShardTests.gateway()
        #expect(
            gateway.shard.toldKeys(of: widget(), attributes: [:], app: "other", after: 0).isEmpty)
    }

    /// No stream was open when the changes came, so the catch-up named them.
    @Test func `a stream that opens later tells of the latest`() throws {
        var gateway = try ShardTests.gateway(collapse: 200)
        let ruleSet = try #require(gateway.shard.ruleSet(of: "app"))
        var recent = RecentChanges()
        for sequence in UInt64(2)...4 {
            let change = Change(entity: "E", id: "1")
            recent.note(
                try ruleSet.decide(change, limits: Limits()).keys, by: ruleSet, at: sequence,
                acceptedAt: 0)
            try gateway.change(change)
        }
        _ = try gateway.open(ShardTests.own("1"), since: .after(1))
        let keys = gateway.shard.toldKeys(
            of: widget(["a": .single("1")]), attributes: [:], app: "app", after: 1)
        #expect(recent.told(keys, after: 1).map(\.sequence) == [4])
    }

    /// Two apps may declare the same rules.
    @Test func `a change of another app is none of a widget`() throws {
        func ruleSet(_ app: String) throws -> RuleSet {
            let declared = try Catalog(
                [
                    "app": .string(app), "entities": ["E": [:]],
                    "widgets": [
                        [
                            "kind": "k", "configuration": "static",
                            "dependsOn": [["entity": "E"]],
                        ]
                    ],
                ], app: app, limits: Limits())
            return RuleSet(declared, sequence: 1, replacing: nil, hash: testHash)
        }
        let (one, other) = (try ruleSet("one"), try ruleSet("other"))
        var recent = RecentChanges()
        recent.note(
            try one.decide(Change(entity: "E"), limits: Limits()).keys, by: one, at: 2,
            acceptedAt: 20)
        let own = one.toldKeys(of: widget(), attributes: [:], upTo: 2)
        #expect(recent.told(own, after: 1).map(\.sequence) == [2])
        let others = other.toldKeys(of: widget(), attributes: [:], upTo: 2)
        #expect(others.count == own.count && recent.told(others, after: 1).isEmpty)
    }
}
