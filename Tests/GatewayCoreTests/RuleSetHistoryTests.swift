import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct RuleSetHistoryTests {
    private static let rules: [JSONValue] = [
        ["entity": "E", "match": ["id": "$a"], "properties": ["p", "q"]],
        ["entity": "E", "match": ["id": "$a"], "operations": ["delete", "insert"]],
        ["entity": "E", "match": ["id": "$$a", "x": "é"]],
        ["entity": "E", "match": ["owner": "$client.user", "id": "$list"]],
        ["entity": "F", "match": ["owner": "$client.user"]], ["entity": "F"],
    ]

    /// A random succession of catalogs; after each, the set restored from its history decides like
    /// the one that lived through all of them, and so do the sets that follow.
    @Test(arguments: 0..<40)
    func `a restored rule set is the one that was, also for what follows`(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        var lived: RuleSet?
        var restored: RuleSet?
        for sequence in 1...12 as ClosedRange<UInt64> {
            let defaults: [JSONValue] = [nil, "1", ["x", "y"]]
            let parameters: [JSONValue] = [
                ["name": "a", "type": "String", "default": random.pick([nil, "1", "é"])],
                ["name": "list", "type": "[String]", "default": random.pick(defaults)],
            ]
            var kinds: [JSONValue] = []
            for name in ["k", "l", "m"] where random.happens(80) {
                kinds.append(
                    kind(
                        Self.rules.filter { _ in random.happens(60) }, named: name,
                        recommendations: random.happens(50) ? [random.pick(Self.rules)] : nil))
            }
            let catalog = try catalog(kinds, parameters: parameters)
            func next(_ previous: RuleSet?) -> RuleSet {
                RuleSet(catalog, sequence: sequence * 10, replacing: previous, hash: testHash)
            }
            let set = next(lived)
            expectEqual(set, next(restored))
            let again = try #require(
                RuleSet(catalog, restoring: set.history, hash: testHash))
            expectEqual(set, again)
            (lived, restored) = (set, again)
        }
    }

    private func expectEqual(_ one: RuleSet, _ other: RuleSet) {
        #expect(one.history == other.history)
        #expect(one.sequence == other.sequence)
        for (rule, twin) in zip(one.rules + one.retired, other.rules + other.retired) {
            #expect(rule.declaration == twin.declaration)
            #expect(rule.target == twin.target)
            #expect(rule.kind == twin.kind)
            #expect(rule.bindings == twin.bindings)
            let values = rule.bindings.map { _ in BoundValues.Position.value("v") }
            #expect(
                BoundValues(rule: rule, positions: values).hash
                    == BoundValues(rule: twin, positions: values).hash)
        }
        for kind in one.history.kinds.keys {
            let (rules, twins) = (one.rules(ofKind: kind), other.rules(ofKind: kind))
            #expect(rules?.slots == twins?.slots)
            #expect(rules?.newestTimelines == twins?.newestTimelines)
            #expect(rules?.newestSet == twins?.newestSet)
        }
    }

    @Test func `a history whose retired rule cannot be read is refused`() throws {
        let set = try ruleSet([Self.rules[0]])
        for text in ["", "[]", "[0,\"k\",\"E\",[\"explode\"],[],[]]", "[9,\"k\",\"E\",[],[],[]]"] {
            var history = set.history
            history.retired = [.init(identity: Array(text.utf8), since: 1)]
            #expect(RuleSet(set.catalog, restoring: history, hash: testHash) == nil)
        }
    }
}
