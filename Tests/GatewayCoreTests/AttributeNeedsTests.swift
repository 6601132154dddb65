import Testing
import WidgetModel

@testable import GatewayCore

/// Client attributes that rules bind to and a client lacks.
@Suite struct AttributeNeedsTests {
    private static let account: JSONValue = ["entity": "E", "match": ["a": "$client.account"]]
    private static let both: JSONValue = [
        "entity": "F", "match": ["a": "$client.account", "b": "$client.household"],
    ]
    private static let plain: JSONValue = ["entity": "F", "match": ["id": "$a"]]

    private func needs(_ rules: [JSONValue]) throws -> AttributeNeeds {
        try ruleSet(rules).attributeNeeds(ofKind: "k", sets: false)
    }

    @Test func `a client without an attribute of each rule depends on nothing`() throws {
        let needs = try needs([Self.account, Self.both])
        #expect(needs.canLackAll)
        #expect(needs.areLacking(in: [:]) && needs.areLacking(in: ["acount": ["1"]]))
        #expect(needs.areLacking(in: ["account": []]))
        #expect(needs.lacked(by: ["acount": ["1"]]) == ["account", "household"])
        #expect(!needs.areLacking(in: ["account": ["1"]]))
        #expect(needs.lacked(by: ["account": ["1"]]) == ["household"])
        #expect(needs.lacked(by: ["account": ["1"], "household": ["2"]]).isEmpty)
    }

    @Test func `a rule without client attributes always applies`() throws {
        let needs = try needs([Self.account, Self.plain])
        #expect(!needs.canLackAll && !needs.areLacking(in: [:]))
        #expect(needs.lacked(by: [:]) == ["account"])
        let none = try self.needs([])
        #expect(!none.areLacking(in: [:]) && none.lacked(by: [:]).isEmpty)
    }

    /// Compares the verdict with the decision about changes.
    @Test func `no change hits what depends on nothing`() throws {
        let rules = try ruleSet([Self.account, Self.both])
        for attributes in [[:], ["account": ["1"]], ["household": ["1"]]] {
            let isHit = try ["E", "F"].contains { entity in
                try hits(rules, Change(entity: entity), widget(), attributes: attributes)
            }
            let isDeaf = rules.attributeNeeds(ofKind: "k", sets: false)
                .areLacking(in: attributes)
            #expect(isHit != isDeaf, "\(attributes)")
            let record = client([widget(), widget()], attributes: attributes)
            #expect(rules.itemsWithoutDependency(in: record) == (isDeaf ? 2 : 0))
        }
    }

    @Test func `a registration is warned of what it lacks, and of a near miss`() throws {
        let rules = try ruleSet([Self.account])
        var warnings = Faults()
        rules.addWarnings(
            about: client([widget()], attributes: ["acount": ["1"], "theme": ["x"]]),
            to: &warnings)
        #expect(
            warnings.list.map(\.message) == [
                "the client has no attribute `account`: rules that bind to it do not apply, so no "
                    + "change makes this stale; did you misspell it as `acount`?"
            ])
        var partial = Faults()
        try ruleSet([Self.account, Self.plain]).addWarnings(
            about: client([widget()]), to: &partial)
        #expect(
            partial.list.map(\.message) == [
                "the client has no attribute `account`: rules that bind to it do not apply"
            ])
    }

    @Test(arguments: [("watchOS", "11.6", true), ("watchOS", "26", false), ("iOS", "11", false)])
    func `a watch that cannot configure widgets is warned of an empty set`(
        platform: String, version: String, isWarned: Bool
    ) throws {
        var warnings = Faults()
        try ruleSet([Self.plain]).addWarnings(
            about: client(
                [], recommendations: [RecommendationSet(kind: "k", items: [])],
                platform: platform, osVersion: OSVersion(version)),
            to: &warnings)
        #expect(warnings.list.contains { $0.place == "recommendations[0].items" } == isWarned)
    }
}
