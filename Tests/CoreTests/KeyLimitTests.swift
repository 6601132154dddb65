import CatalogModel
import Testing
import WidgetModel

@testable import GatewayCore

/// The number of keys that one change may bump is limited when the change is decided, when a
/// catalog is put, and when the log is replayed.
@Suite struct KeyLimitTests {
    private static func limits(changeKeys: Int) -> Limits {
        var limits = Limits()
        limits.changeKeysMax = changeKeys
        return limits
    }

    private static let change = Change(
        entity: "E", attributes: ["x": (0..<8).map(String.init), "y": (0..<8).map(String.init)])

    @Test func `keys of unset parameters count and so do those of all rules together`() throws {
        let rules = try ruleSet([
            ["entity": "E", "match": ["x": "$a", "y": "$b"]],
            ["entity": "E", "match": ["x": "$a", "y": "$b"], "properties": ["p"]],
        ])
        // There are eight values and unset at each of two bindings, for two rules.
        let count = 2 * 9 * 9
        let most = try rules.decide(Self.change, limits: Self.limits(changeKeys: count))
        #expect(most.keys.count == count)
        #expect(throws: RuleSet.TooManyKeys(count: count, kind: nil)) {
            try rules.decide(Self.change, limits: Self.limits(changeKeys: count - 1))
        }
        #expect(throws: RuleSet.TooManyKeys(count: 81, kind: nil)) {
            try rules.decide(Self.change, limits: Self.limits(changeKeys: 80))
        }
        #expect(throws: RuleSet.TooManyKeys.self) {
            try rules.explain(Self.change, limits: Self.limits(changeKeys: count - 1))
        }
    }

    @Test func `a catalog by which every change of an entity raises too many keys is refused`()
        throws
    {
        // Two parameters that may be left unset make four keys.
        let rules: [JSONValue] = ["p", "q"].map {
            ["entity": "E", "match": ["x": "$a", "y": "$b"], "properties": [.string($0)]]
        }
        func read(changeKeys: Int) throws(Faults) -> Catalog {
            try Catalog(
                [
                    "app": "app", "entities": ["E": ["properties": ["p", "q"]]],
                    "intents": [
                        "I": [
                            "parameters": [
                                ["name": "a", "type": "String"], ["name": "b", "type": "String"],
                            ]
                        ]
                    ],
                    "widgets": [
                        kind(rules, named: "k", recommendations: rules), kind(rules, named: "l"),
                    ],
                ], app: "app", limits: Self.limits(changeKeys: changeKeys))
        }
        #expect(throws: Never.self) { try read(changeKeys: 24) }
        do throws(Faults) {
            _ = try read(changeKeys: 23)
            Issue.record("it was taken")
        } catch {
            #expect(error.list.map(\.place) == ["entities.E"])
            #expect(error.list.first?.message.contains("6 rules") == true)
            #expect(error.list.first?.message.contains("24 keys; at most 23") == true)
        }
    }

    @Test func `a replayed change with too many keys reloads everything and one within does not`()
        throws
    {
        let declared = try catalog([kind([["entity": "E", "match": ["x": "$a", "y": "$b"]]])])
        var decider = Decider(hash: testHash, limits: Self.limits(changeKeys: 80))
        decider.install(declared, at: 1)
        guard
            case .reload(.everything) = decider.replay(Self.change, app: "app", cause: nil)
        else { return #expect(Bool(false), "it was decided key by key") }
        // This has more combinations than one rule may have now, and fewer than it could have
        // before.
        let wide = Change(
            entity: "E", attributes: ["x": (0..<70).map(String.init), "y": []])
        guard case .change(let decision, _) = decider.replay(wide, app: "app", cause: nil)
        else { return #expect(Bool(false), "it reloads everything") }
        #expect(decision.keys.count <= 80)
        guard case .change(let none, _) = decider.replay(wide, app: "other", cause: nil)
        else { return #expect(Bool(false), "an app without catalog hits something") }
        #expect(none.isUnmatched)
    }

    @Test func `a catalog compiled before its place in the log is known is as one compiled after`()
        throws
    {
        let rule: JSONValue = ["entity": "E", "match": ["id": "$a"]]
        let other: JSONValue = ["entity": "F"]
        var decider = Decider(hash: testHash, limits: Limits())
        let first = decider.install(try catalog([kind([rule])]), at: 3)
        let second = RuleSet(
            try catalog([kind([rule, other]), kind([other], named: "l")]), sequence: 0,
            replacing: first, hash: testHash)
        decider.install(second, at: 9)
        #expect(decider.ruleSets["app"] === second && second.sequence == 9)
        #expect(second.rules.map(\.since) == [3, 9, 9])
        #expect(second.since(kind: "k") == 3 && second.since(kind: "l") == 9)
        #expect(second.rules(ofKind: "k")?.newestTimelines == 9)
        #expect(second.rules(ofKind: "k")?.newestSet == 3)
        // The transaction was started again.
        second.comeIntoForce(at: 10)
        #expect(second.rules.map(\.since) == [3, 10, 10] && second.since(kind: "l") == 10)
    }
}
