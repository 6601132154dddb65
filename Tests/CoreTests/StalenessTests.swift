import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct StalenessTests {
    static let rule: JSONValue = ["entity": "E", "match": ["id": "$a"]]

    static func gateway(_ limits: CoreLimits = CoreLimits()) throws -> SmallGateway {
        SmallGateway(
            try catalog([kind([rule]), kind([["entity": "F"]], named: "l")]), limits: limits)
    }

    static func poll(
        _ gateway: SmallGateway, _ record: ClientRecord, _ point: ResumePoint,
        kinds: Set<String>? = nil
    ) -> String {
        words(gateway.shard.poll(record, app: "app", since: point, kinds: kinds))
    }

    @Test func `a widget is stale exactly when a version of its keys is above the cursor`() throws {
        var gateway = try Self.gateway()
        let own = client([widget(["a": .single("1")]), widget(["a": .unset]), widget(kind: "l")])
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "2"))
        #expect(Self.poll(gateway, own, .after(1)) == "k(a=1), k(a=null)")
        #expect(Self.poll(gateway, own, .after(2)) == "k(a=null)")
        #expect(Self.poll(gateway, own, .after(3)) == "")
        try gateway.change(Change(entity: "E"))
        #expect(Self.poll(gateway, own, .after(3)) == "k(a=1), k(a=null)")
        try gateway.change(Change(entity: "F"))
        #expect(Self.poll(gateway, own, .after(4)) == "l")
        #expect(Self.poll(gateway, own, .everything) == "all")
        #expect(Self.poll(gateway, own, .after(3), kinds: ["l"]) == "l")
        #expect(Self.poll(gateway, own, .everything, kinds: ["l"]) == "l")
        #expect(Self.poll(gateway, own, .everything, kinds: ["x"]) == "")
        #expect(Self.poll(gateway, client([]), .everything) == "")
        #expect(gateway.shard.poll(own, app: "other", since: .everything, kinds: nil) == nil)
    }

    @Test func `too many entries name kinds only, too many kinds say all`() throws {
        var limits = CoreLimits()
        limits.entriesMax = 2
        limits.kindsMax = 1
        var gateway = try Self.gateway(limits)
        let own = client((1...3).map { widget(["a": .single("\($0)")]) } + [widget(kind: "l")])
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(Self.poll(gateway, own, .after(1)) == "k(a=1)")
        var wider = CoreLimits()
        wider.entriesMax = 2
        var second = try Self.gateway(wider)
        for id in 1...3 { try second.change(Change(entity: "E", id: "\(id)")) }
        #expect(Self.poll(second, own, .after(2)) == "k(a=2), k(a=3)")
        #expect(Self.poll(second, own, .after(1)) == "k")
        try gateway.change(Change(entity: "F"))
        #expect(Self.poll(gateway, own, .after(1)) == "all")
        #expect(Self.poll(gateway, own, .everything, kinds: ["k", "l"]) == "all")
    }

    @Test func `a kind named as a whole needs no narrower names`() {
        let names = [
            InvalidationTarget(.timeline, "k", [.init(name: "a", value: "1")]),
            InvalidationTarget(.timeline, "k"),
            InvalidationTarget(.recommendations, "k"),
        ]
        let bounded = StaleSet(names, sequence: 3).bounded(entriesMax: 64, kindsMax: 48)
        #expect(words(bounded) == "k, k.recommendations")
        #expect(bounded.sequence == 3)
    }
}

@Suite struct ActivityStalenessTests {
    static func gateway(
        _ rules: [JSONValue] = [StalenessTests.rule], limits: CoreLimits = CoreLimits()
    ) throws -> SmallGateway {
        SmallGateway(
            try catalog(
                [kind([StalenessTests.rule])],
                activities: [
                    activityDeclaration(rules), activityDeclaration([["entity": "F"]], type: "B"),
                ]), limits: limits)
    }

    /// A client with an activity of the type `A` for each value of the attribute `a`, whose id is
    /// that value behind the client's name.
    static func own(_ values: String..., name: String = "c") -> ClientRecord {
        client(
            [], name: name,
            activities: values.map {
                RegisteredActivity(type: "A", id: name + $0, attributes: ["a": .single($0)])
            })
    }

    @Test func `a stream names the attributes of stale activities, a poll their ids`() throws {
        var gateway = try Self.gateway()
        let one = try gateway.open(Self.own("1", "2", name: "one"), since: .after(1))
        let two = try gateway.open(Self.own("1", name: "two"), since: .after(1))
        let other = try gateway.open(Self.own("3", name: "other"), since: .after(1))
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(gateway.shard.output.frames.count == 1, "it is signed once for all")
        #expect(gateway.sent(one) == ["A.activity(a=1) id 2"])
        #expect(gateway.sent(two) == ["A.activity(a=1) id 2"])
        #expect(gateway.taken(other) == [])
        func poll(_ own: ClientRecord) -> String { StalenessTests.poll(gateway, own, .after(1)) }
        #expect(poll(Self.own("1", "2", name: "one")) == "A.activity(=one1)")
        #expect(poll(Self.own("2")) == "")
        let late = try gateway.open(Self.own("2", "1", name: "late"), since: .after(1))
        #expect(gateway.taken(late) == ["A.activity(=late1) id 2"])
    }

    @Test func `each stale activity is named once, after all else`() throws {
        var gateway = try Self.gateway([StalenessTests.rule, ["entity": "E"]])
        let own = client(
            [widget(["a": .single("1")])], activities: Self.own("1", "2").registration.activities)
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(
            StalenessTests.poll(gateway, own, .after(1))
                == "k(a=1), A.activity(=c1), A.activity(=c2)")
        gateway.reload(.kind("A"))
        #expect(
            StalenessTests.poll(gateway, own, .after(2)) == "A.activity(=c1), A.activity(=c2)")
        try gateway.change(Change(entity: "F"))
        #expect(StalenessTests.poll(gateway, own, .after(3)) == "")
    }

    @Test func `too many activities are named by their type`() throws {
        var limits = CoreLimits()
        limits.entriesMax = 2
        var gateway = try Self.gateway([["entity": "E"]], limits: limits)
        try gateway.change(Change(entity: "E"))
        #expect(
            StalenessTests.poll(gateway, Self.own("1", "2"), .after(1))
                == "A.activity(=c1), A.activity(=c2)")
        #expect(StalenessTests.poll(gateway, Self.own("1", "2", "3"), .after(1)) == "A.activity")
    }

    @Test func `what is not of a declared type sleeps, as does another thing of its name`() throws {
        var gateway = try Self.gateway([["entity": "E"]])
        let item = RecommendationSet.Item(parameters: [:], description: "")
        let own = client(
            [widget(kind: "A")], recommendations: [RecommendationSet(kind: "A", items: [item])],
            activities: ["Z", "k"].map { RegisteredActivity(type: $0, id: $0) })
        try gateway.change(Change(entity: "E"))
        #expect(StalenessTests.poll(gateway, own, .after(1)) == "")
        #expect(StalenessTests.poll(gateway, own, .everything) == "")
        let ruleSet = try #require(gateway.decider.ruleSets["app"])
        var items = 0
        ruleSet.visitItems(of: own.registration) { _, _, _ in items += 1 }
        #expect(items == 0)
    }
}
