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
