import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct RuleSetTests {
    static let first: JSONValue = ["entity": "E", "match": ["id": "$a"], "properties": ["p", "q"]]
    static let second: JSONValue = ["entity": "F"]

    @Test func `a rule that moved keeps its age, a changed one is new`() throws {
        let old = try ruleSet([Self.first, Self.second], at: 1)
        let moved = try ruleSet([Self.second, Self.first], at: 5, replacing: old)
        #expect(moved.rules.map(\.since) == [1, 1])
        #expect(moved.rules.map(\.identity) == old.rules.reversed().map(\.identity))
        // Members in another order are the same content.
        let same: JSONValue = ["properties": ["q", "p"], "match": ["id": "$a"], "entity": "E"]
        #expect(try ruleSet([same], at: 5, replacing: old).rules.map(\.since) == [1])
        let changed: JSONValue = ["entity": "E", "match": ["id": "$a"], "properties": ["p"]]
        #expect(try ruleSet([changed], at: 5, replacing: old).rules.map(\.since) == [5])
    }

    @Test func `a rule written twice is one`() throws {
        let rules = try ruleSet([Self.first, Self.second, Self.first])
        #expect(rules.rules.count == 2)
    }

    @Test func `a literal is not the parameter of the same text`() throws {
        let rules = try ruleSet([
            ["entity": "E", "match": ["id": "$a"]], ["entity": "E", "match": ["id": "$$a"]],
            ["entity": "E", "match": ["id": "$client.a"]], ["entity": "E", "match": ["id": "é"]],
            ["entity": "E", "match": ["id": "e\u{301}"]],
        ])
        #expect(Set(rules.rules.map(\.identity)).count == 5)
    }

    @Test func `a kind that becomes a type of activities is declared anew`() throws {
        func set(
            _ widgets: [JSONValue], _ activities: [JSONValue], _ previous: RuleSet?
        ) throws -> RuleSet {
            RuleSet(
                try catalog(widgets, activities: activities),
                sequence: (previous?.sequence ?? 0) + 1, replacing: previous, hash: testHash)
        }
        let one = try set([kind([Self.first], named: "A")], [], nil)
        let two = try set([], [activityDeclaration([Self.first])], one)
        #expect(two.since(kind: "A") == 2 && two.target(ofKind: "A") == .activity)
        #expect(two.rules.map(\.since) == [2] && two.retired.isEmpty)
        // Another source of content makes nothing stale, another rule does.
        let other = activityDeclaration([Self.first], content: "https://other")
        let three = try set([kind([Self.first])], [other], two)
        #expect(three.since(kind: "A") == 2)
        #expect(three.rules.map { "\($0.kind) \($0.since)" } == ["k 3", "A 2"])
        let four = try set([], [activityDeclaration([Self.second, Self.first])], three)
        #expect(four.rules.map(\.since) == [4, 2] && four.since(kind: "A") == 2)
        #expect(try set([kind([], named: "A")], [], four).since(kind: "A") == 5)
    }

    @Test func `dropped rules are remembered in a bounded number`() throws {
        var rules = try ruleSet([Self.first], at: 1)
        for sequence in 2...100 {
            let rule: JSONValue = ["entity": "E", "match": ["x": .string("\(sequence)")]]
            rules = try ruleSet([rule], at: UInt64(sequence), replacing: rules)
            #expect(rules.retired.count <= RuleSet.kindRetiredRulesMax)
        }
        // There were too many rules, so the kind began anew.
        #expect((rules.since(kind: "k") ?? 0) > 1)
    }
}
