import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct ChangeExplanationTests {
    private static let rules: [JSONValue] = [
        ["entity": "E", "match": ["id": "$a", "tone": "$b"], "properties": ["p"]],
        ["entity": "E", "operations": ["delete"]],
        ["entity": "E", "match": ["id": "$a", "level": "1"]],
        ["entity": "F"],
    ]

    private func explain(_ change: Change) throws -> ChangeExplanation {
        try ruleSet(Self.rules).explain(change, limits: Limits())
    }

    @Test func `each rule of the entity says why it is hit or not`() throws {
        let change = Change(
            entity: "E", id: "7", properties: ["q"], attributes: ["level": ["2"]])
        let explanation = try explain(change)
        #expect(
            explanation.rules.map(\.verdict) == [
                .propertiesNotListed, .operationNotListed, .literalDiffers(attribute: "level"),
            ])
        #expect(explanation.otherRules == 1)
        #expect(explanation.decision.isUnmatched && !explanation.decision.isBroad)
        #expect(try explain(Change(entity: "G")).otherRules == 4)
    }

    @Test func `a hit names its keys, and says when an attribute is lacking`() throws {
        let explanation = try explain(Change(entity: "E", id: "7", properties: ["p"]))
        let first = explanation.rules[0]
        #expect(first.verdict == .hit && first.isBroad && explanation.decision.isBroad)
        let bound = first.rule.bound(first.keys[0])
        #expect(bound.map(\.binding.attribute) == ["id", "tone"])
        #expect(bound.map(\.binding.sourceText) == ["$a", "$b"])
        #expect(bound.map(\.position) == [.value("7"), .missing])
        // The keys also reach those that leave the parameter unset.
        #expect(first.rule.bound(first.keys[1]).map(\.position) == [.unset, .missing])
        #expect(explanation.rules[2].isBroad, "for lack of the literal's attribute")
        let exact = try explain(
            Change(entity: "E", id: "7", attributes: ["level": ["1"], "tone": ["low"]]))
        #expect(exact.rules.map(\.isBroad) == [false, false, false])
        #expect(!exact.decision.isBroad)
    }

    @Test func `a rule is found where the catalog declares it`() throws {
        let set = RuleSet(
            try catalog(
                [
                    kind([["entity": "F"]], named: "other"),
                    kind(Self.rules, recommendations: [["entity": "F"], ["entity": "E"]]),
                ], activities: [activityDeclaration([["entity": "F"], ["entity": "E"]])]),
            sequence: 1, replacing: nil, hash: testHash)
        let explanation = try set.explain(
            Change(entity: "E", id: "7", operation: .delete), limits: Limits())
        #expect(
            explanation.rules.map { set.place(of: $0.rule) } == [
                "widgets[1].dependsOn[0]", "widgets[1].dependsOn[1]", "widgets[1].dependsOn[2]",
                "widgets[1].recommendations.dependsOn[1]", "activities[0].dependsOn[1]",
            ])
        #expect(explanation.rules.last?.rule.target == .activity)
    }

    @Test func `what is refused when it is posted is refused`() throws {
        var limits = Limits()
        limits.changeRuleKeysMax = 2
        let change = Change(entity: "E", id: "7", attributes: ["tone": ["1", "2", "3"]])
        #expect(throws: RuleSet.TooManyKeys.self) {
            try ruleSet(Self.rules).explain(change, limits: limits)
        }
    }
}

/// Whatever the catalog, the change and the registrations, the explanation agrees with the
/// decision, and the clients that hold its keys are the clients that are notified.
@Suite struct ExplanationPropertyTests {
    @Test(arguments: 0..<60)
    func `explained is what is decided, and its holders are those that are told`(
        seed: UInt64
    ) throws {
        var random = SplitMix64(seed: seed)
        let catalog = try RandomInputs.catalog(app: "app", &random)
        var gateway = SmallGateway(catalog)
        let ruleSet = try #require(gateway.shard.ruleSet(of: "app"))
        var records: [ClientRecord] = []
        var streams: [StreamID] = []
        for index in 0..<25 {
            let attributes = RandomInputs.attributes(&random)
            let record = ClientRecord(
                client: "c\(index)",
                registration: RandomInputs.registration(attributes: attributes, &random),
                attributes: ClientAttributes(own: attributes), confirmed: ["k0": 1])
            records.append(record)
            streams.append(try gateway.open(record, since: .after(gateway.head)))
        }
        gateway.shard.clearOutput()
        let changes = (0..<20).map { _ in RandomInputs.change(&random) }
        let decisions = try changes.map { try ruleSet.decide($0, limits: Limits()) }
        let together = ChangeReach(decisions.map(\.keys), by: ruleSet)
        for (number, change) in changes.enumerated() {
            let explanation = try ruleSet.explain(change, limits: Limits())
            let decision = decisions[number]
            let raised = decision.keys.map { "\($0.rule) \($0.values.bytes)" }
            let explained = explanation.rules.flatMap { rule in
                rule.keys.map { "\(rule.slot) \($0.bytes)" }
            }
            #expect(explained == raised)
            #expect(
                explanation.rules.contains(where: \.isBroad) == decision.isBroad
                    && explanation.rules.allSatisfy(\.keys.isEmpty) == decision.isUnmatched)
            #expect(explanation.rules.count + explanation.otherRules == ruleSet.rules.count)
            #expect(
                explanation.rules.allSatisfy { $0.verdict == $0.rule.verdict(on: change) })

            let reach = ChangeReach([decision.keys], by: ruleSet)
            let holders = Set(records.filter { !reach.holds(of: $0).isEmpty }.map(\.client))
            gateway.now += 10_000
            gateway.shard.endWindows(now: gateway.now)
            gateway.shard.clearOutput()
            try gateway.change(change)
            let told = Set(
                zip(records, streams).filter { !gateway.sent($0.1).isEmpty }.map(\.0.client))
            gateway.shard.clearOutput()
            #expect(holders == told, "\(change)")
            for record in records {
                let alone = reach.holds(of: record).map { "\($0.item) \($0.keys)" }
                let among = together.holds(of: record).filter { $0.change == number }
                #expect(Set(among.map { "\($0.item) \($0.keys)" }) == Set(alone))
                #expect(Set(alone).count == alone.count, "each thing once")
            }
        }
    }
}
