import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct RuleTests {
    @Test func `a literal agrees with its bytes and a doubled dollar sign is one`() throws {
        let rules = try ruleSet([["entity": "E", "match": ["x": "$$a", "y": "é"]]])
        func change(_ x: [String], _ y: [String]) -> Change {
            Change(entity: "E", attributes: ["x": x, "y": y])
        }
        #expect(try hits(rules, change(["$a"], ["é"]), widget()))
        #expect(try hits(rules, change(["b", "$a"], ["é"]), widget()))
        #expect(try !hits(rules, change(["$$a"], ["é"]), widget()))
        #expect(try !hits(rules, change(["$a"], ["e\u{301}"]), widget()))
        #expect(
            rules.rules[0].verdict(on: change(["a"], ["é"])) == .literalDiffers(attribute: "x"))
        #expect(try hits(rules, Change(entity: "E"), widget()))
    }

    @Test func `the id of the change is bound as id`() throws {
        let rules = try ruleSet([["entity": "E", "match": ["id": "$a"]]])
        #expect(try hits(rules, Change(entity: "E", id: "1"), widget(["a": .single("1")])))
        #expect(try !hits(rules, Change(entity: "E", id: "2"), widget(["a": .single("1")])))
        // An attribute of that name is not the id, and readers refuse it.
        #expect(
            try hits(
                rules, Change(entity: "E", attributes: ["id": ["2"]]), widget(["a": .single("1")])))
    }

    /// The name had the default's text for a widget that its client knows as unset, so the client
    /// rebuilt nothing.
    @Test func `a widget stale by its default is called by the name its client knows`() throws {
        let rules = try ruleSet(
            [["entity": "E", "match": ["id": "$a"]]],
            parameters: [["name": "a", "type": "String", "default": "1"]])
        let own = client([widget(["a": .unset])])
        let name = rules.rules[0].name(of: rules.dependencies(of: own)[0].values)
        let reload = ReloadNotification.Reload(kind: name.kind, parameters: name.parameters)
        #expect(reload.concerns(kind: "k", values: ["a": .unset]))
        #expect(!reload.concerns(kind: "k", values: ["a": .single("2")]))
    }

    @Test func `a change has at most 64 keys per rule`() throws {
        let rules = try ruleSet([["entity": "E", "match": ["x": "$a", "y": "$b"]]])
        func change(_ x: Int, _ y: Int) -> Change {
            Change(
                entity: "E",
                attributes: ["x": (0..<x).map(String.init), "y": (0..<y).map(String.init)])
        }
        #expect(throws: Never.self) { try rules.decide(change(8, 8), limits: Limits()) }
        #expect(throws: RuleSet.TooManyKeys(count: 65, kind: "k")) {
            try rules.decide(change(13, 5), limits: Limits())
        }
        // Values that no rule binds to are no keys.
        let free = try ruleSet([["entity": "E", "match": ["x": "1"]]])
        #expect(try free.decide(change(64, 64), limits: Limits()).keys.count == 1)
    }

    @Test func `names hold bound parameters, null for unset, none where every value is meant`()
        throws
    {
        let rules = try ruleSet([
            ["entity": "E", "match": ["id": "$b", "x": "$a", "h": "$client.h", "y": "1"]]
        ])
        let rule = rules.rules[0]
        // Positions stand in the order of the attributes: h, id, x.
        #expect(rule.bindings.map(\.attribute) == ["h", "id", "x"])
        let name = rule.name(of: [.value("7"), .unset, .value("1")])
        #expect(name.parameters == [.init(name: "a", value: "1"), .init(name: "b", value: nil)])
        #expect(
            rule.name(of: [.value("7"), .missing, .value("1")]).parameters
                == [.init(name: "a", value: "1")])
        #expect(rule.name(of: [.missing, .missing, .missing]).parameters.isEmpty)
    }

    /// Covers two bindings with each value, another one, unset, a list or none on either side. The
    /// keys must agree with the definition.
    @Test func `all combinations of two bindings decide as defined`() throws {
        let owns: [ParameterValue] = [
            .unset, .single("1"), .single("2"), .list(["1", "2"]), .list(["2", "3"]), .list([]),
        ]
        let changed: [[String]?] = [nil, ["1"], ["2"], ["3"], ["1", "2"], ["1", "3"]]
        let attributes: [[String]?] = [nil, ["1"], ["2", "3"]]
        let defaults: [(JSONValue, [String]?)] = [
            (nil, nil), ("1", ["1"]), (["1", "3"], ["1", "3"]),
        ]
        func agree(_ own: ParameterValue, _ standIn: [String]?, _ values: [String]?) -> Bool {
            guard let values else { return true }
            switch own {
            case .unset: return standIn.map { !Set($0).isDisjoint(with: values) } ?? true
            case .single(let text): return values.contains(text)
            case .list(let texts): return !Set(texts).isDisjoint(with: values)
            }
        }
        var count = 0
        for (value, standIn) in defaults {
            let parameters: [JSONValue] = [
                ["name": "a", "type": "[String]", "default": value],
                ["name": "b", "type": "String"],
            ]
            let two = try ruleSet(
                [["entity": "E", "match": ["x": "$a", "y": "$b"]]], parameters: parameters)
            let client = try ruleSet(
                [["entity": "E", "match": ["x": "$a", "y": "$client.h"]]], parameters: parameters)
            for x in changed {
                for y in changed {
                    var values: [String: [String]] = [:]
                    values["x"] = x
                    values["y"] = y
                    let change = Change(entity: "E", attributes: values)
                    for a in owns {
                        for b in owns {
                            count += 1
                            #expect(
                                try hits(two, change, widget(["a": a, "b": b]))
                                    == (agree(a, standIn, x) && agree(b, nil, y)))
                        }
                        for h in attributes {
                            let isHit = try hits(
                                client, change, widget(["a": a]),
                                attributes: h.map { ["h": $0] } ?? [:])
                            let agrees = h.map { agree(.list($0), nil, y) } ?? false
                            #expect(isHit == (agree(a, standIn, x) && agrees))
                        }
                    }
                }
            }
        }
        #expect(count == 3 * 6 * 6 * 6 * 6)
    }
}

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
