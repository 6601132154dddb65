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

    @Test func `a registration is warned of activities that the catalog does not declare`() throws {
        let rules = RuleSet(
            try catalog(
                [], activities: [activityDeclaration([Self.account], type: "Battle")]),
            sequence: 1, replacing: nil, hash: testHash)
        var own = ClientRegistration(platform: "iOS")
        own.activities = [
            RegisteredActivity(type: "Batle", id: "1"),
            RegisteredActivity(
                type: "Battle", id: "2", attributes: ["a": .list(["1"]), "bb": .unset]),
        ]
        own.activityStarts = ["Battle", "Race"].map {
            ActivityStartAddress(type: $0, delivery: .stream)
        }
        var warnings = Faults()
        rules.addWarnings(
            about: ClientRecord(client: "c", registration: own, attributes: .init()), to: &warnings)
        #expect(
            warnings.list.map { "\($0.place) \($0.message)" } == [
                "activities[0].type is not in the catalog and is inactive; did you mean `Battle`?",
                "activities[1].attributes.bb is not an attribute that the catalog declares; did "
                    + "you mean `b`?",
                "activities[1] the client has no attribute `account`: rules that bind to it do not "
                    + "apply, so no change makes this stale",
                "activityStarts[1].type is not in the catalog and is inactive",
            ])
    }

    @Test func `the keys of activities count towards those of the client`() throws {
        let rules = RuleSet(
            try catalog(
                [], activities: [activityDeclaration([["entity": "E", "match": ["id": "$a"]]])]),
            sequence: 1, replacing: nil, hash: testHash)
        let lists = (1...3).map {
            RegisteredActivity(
                type: "A", id: "\($0)", attributes: ["a": .list(["1", "2", "3", "4"])])
        }
        let own = client([], activities: lists)
        var limits = Limits()
        limits.clientKeysMax = 12
        #expect(rules.faults(in: own, limits: limits).isEmpty)
        limits.clientKeysMax = 11
        #expect(rules.faults(in: own, limits: limits).list.map(\.place) == ["widgets"])
        limits.widgetKeysMax = 3
        #expect(
            rules.faults(in: own, limits: limits).list.map(\.place)
                == ["activities[0]", "activities[1]", "activities[2]", "widgets"])
    }

    /// The catalog and an app with other declarations: the registration stays in force.
    @Test func `a registration is warned of values that the catalog's types do not have`() throws {
        let types = [
            ("s", "String"), ("i", "Int?"), ("d", "Double"), ("b", "Bool"), ("l", "[Int]"),
        ]
        let rules = try ruleSet(
            [["entity": "F"]], parameters: types.map { ["name": .string($0), "type": .string($1)] })
        func warned(_ parameters: [String: ParameterValue]) -> [String] {
            var warnings = Faults()
            let set = RecommendationSet(
                kind: "k", items: [.init(parameters: parameters, description: "")])
            rules.addWarnings(
                about: client([widget(parameters)], recommendations: [set]), to: &warnings)
            let inSet = warnings.list.filter { $0.place.hasPrefix("recommendations[0].items[0].") }
            let list = warnings.list.filter { $0.place.hasPrefix("widgets[0].") }
            #expect(inSet.map(\.message) == list.map(\.message))
            return list.map { "\($0.place) \($0.message)" }
        }
        let right: [String: ParameterValue] = [
            "s": .single("1"), "i": .unset, "d": .single("1e3"), "b": .single("true"),
            "l": .list(["1", "2"]),
        ]
        #expect(warned(right) == [])
        let wrong: [String: ParameterValue] = [
            "s": .list(["1"]), "i": .single("1.5"), "d": .single("x"), "b": .single("1"),
            "l": .list(["1", "x"]), "z": .single("1"),
        ]
        #expect(
            warned(wrong) == [
                "widgets[0].parameters.b is not of the type `Bool` that the catalog declares",
                "widgets[0].parameters.d is not of the type `Double` that the catalog declares",
                "widgets[0].parameters.i is not of the type `Int` that the catalog declares",
                "widgets[0].parameters.l is not of the type `[Int]` that the catalog declares",
                "widgets[0].parameters.s is not of the type `String` that the catalog declares",
                "widgets[0].parameters.z is not a parameter of the kind's intent",
            ])
    }
}
