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

    @Test func `an operator reloads a kind or the app`() throws {
        var gateway = try Self.gateway()
        let own = client([widget(["a": .single("1")]), widget(kind: "l")])
        gateway.reload(.kind("k"))
        #expect(Self.poll(gateway, own, .after(1)) == "k")
        #expect(Self.poll(gateway, own, .after(2)) == "")
        gateway.reload(.everything)
        #expect(Self.poll(gateway, own, .after(2)) == "all")
        #expect(Self.poll(gateway, own, .after(2), kinds: ["l"]) == "l")
        #expect(Self.poll(gateway, own, .after(3)) == "")
    }

    @Test func `an operator reloads one client, with all that it holds`() throws {
        var gateway = try Self.gateway()
        let own = client([widget(["a": .single("1")]), widget(kind: "l")])
        let other = client([widget(["a": .single("1")])], name: "other")
        gateway.reload(.client("client"))
        #expect(Self.poll(gateway, own, .after(1)) == "all")
        #expect(Self.poll(gateway, own, .after(1), kinds: ["l"]) == "l")
        #expect(Self.poll(gateway, own, .after(2)) == "")
        #expect(Self.poll(gateway, other, .after(1)) == "")
        #expect(Self.poll(gateway, client([]), .after(1)) == "")
        // It applies to the client as it is by then, and through another catalog.
        gateway.put(try catalog([kind([Self.rule]), kind([["entity": "F"]], named: "l")]))
        #expect(Self.poll(gateway, client([widget(kind: "l")]), .after(1)) == "all")
    }

    @Test func `a rule newer than the cursor makes its kind stale and no other`() throws {
        var gateway = try Self.gateway()
        let own = client([widget(["a": .single("1")]), widget(kind: "l")])
        gateway.put(
            try catalog([
                kind([Self.rule, ["entity": "F"]]), kind([["entity": "F"]], named: "l"),
            ]))
        #expect(Self.poll(gateway, own, .after(1)) == "k")
        #expect(Self.poll(gateway, own, .after(2)) == "")
    }

    @Test func `widgets of a removed kind sleep and are stale when they wake`() throws {
        var gateway = try Self.gateway()
        let own = client([widget(["a": .single("1")])])
        gateway.put(try catalog([kind([["entity": "F"]], named: "l")]))
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(Self.poll(gateway, own, .after(1)) == "")
        #expect(Self.poll(gateway, own, .everything) == "")
        gateway.put(try catalog([kind([Self.rule])]))
        #expect(Self.poll(gateway, own, .after(3)) == "k")
    }

    @Test func `a client that lacks an attribute is still told of its kind's reload`() throws {
        var gateway = SmallGateway(
            try catalog([kind([["entity": "E", "match": ["h": "$client.h"]]])]))
        try gateway.change(Change(entity: "E"))
        #expect(Self.poll(gateway, client([widget()]), .after(1)) == "")
        gateway.reload(.kind("k"))
        #expect(Self.poll(gateway, client([widget()]), .after(1)) == "k")
    }

    @Test func `controls and relevance are called by kind alone`() throws {
        func declared(_ name: String, _ configuration: JSONValue) -> JSONValue {
            [
                "kind": .string(name), "configuration": configuration, "intent": "I",
                "dependsOn": [Self.rule],
            ]
        }
        var gateway = SmallGateway(
            try catalog([declared("c", "control"), declared("r", "relevance")]))
        var registration = ClientRegistration(
            platform: "iOS", widgets: [widget(["a": .single("1")], kind: "r"), widget(kind: "c")])
        registration.controls = [
            PlacedControl(kind: "c", id: "1", parameters: ["a": .single("1")]),
            PlacedControl(kind: "r", id: "2", parameters: [:]),
        ]
        let own = ClientRecord(client: "client", registration: registration, attributes: .init())
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(Self.poll(gateway, own, .after(1)) == "r.relevance, c.control")
        // A widget registered as the other of the two sleeps.
        try gateway.change(Change(entity: "E", id: "2"))
        #expect(Self.poll(gateway, own, .after(2)) == "")
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

    @Test func `below the floor everything is stale`() throws {
        var gateway = try Self.gateway()
        gateway.shard = Shard(floor: 10)
        gateway.shard.install(try #require(gateway.decider.ruleSets["app"]))
        let own = client([widget()])
        #expect(Self.poll(gateway, own, .after(9)) == "all")
        #expect(Self.poll(gateway, own, .after(10)) == "")
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

    static func poll(
        _ gateway: SmallGateway, _ activities: RegisteredActivity..., since cursor: UInt64 = 1
    ) -> String {
        StalenessTests.poll(gateway, client([], activities: activities), .after(cursor))
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

    @Test func `lists, unset attributes and the client's own decide as for widgets`() throws {
        var gateway = try Self.gateway()
        try gateway.change(Change(entity: "E", id: "2"))
        func poll(_ value: ParameterValue?) -> String {
            var one = RegisteredActivity(type: "A", id: "1")
            one.attributes["a"] = value
            return Self.poll(gateway, one)
        }
        #expect(poll(.list(["1", "2"])) == "A.activity(=1)")
        #expect(poll(.unset) == "A.activity(=1)" && poll(nil) == "A.activity(=1)")
        #expect(poll(.single("1")) == "" && poll(.list([])) == "")
        var accounts = try Self.gateway([["entity": "E", "match": ["x": "$client.h"]]])
        try accounts.change(Change(entity: "E", attributes: ["x": ["1"]]))
        let activities = Self.own("1").registration.activities
        let cases: [([String], String)] = [(["1"], "A.activity(=c1)"), (["2"], ""), ([], "")]
        for (values, said) in cases {
            let own = client([], attributes: ["h": values], activities: activities)
            #expect(StalenessTests.poll(accounts, own, .after(1)) == said)
        }
    }

    @Test func `everything is all, or for some types the ids of theirs`() throws {
        let gateway = try Self.gateway()
        let own = Self.own("1", "2")
        #expect(StalenessTests.poll(gateway, own, .everything) == "all")
        #expect(
            StalenessTests.poll(gateway, own, .everything, kinds: ["A"])
                == "A.activity(=c1), A.activity(=c2)")
        #expect(StalenessTests.poll(gateway, own, .everything, kinds: ["B", "k"]) == "")
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

@Suite struct RecommendationTests {
    static func gateway() throws -> SmallGateway {
        SmallGateway(
            try catalog([
                kind(
                    [["entity": "F"]],
                    recommendations: [["entity": "E", "operations": ["insert", "delete"]]])
            ]))
    }

    static func own(_ items: Int, confirmed: UInt64? = nil) -> ClientRecord {
        let item = RecommendationSet.Item(parameters: [:], description: "")
        return client(
            [], recommendations: [.init(kind: "k", items: Array(repeating: item, count: items))],
            confirmed: confirmed.map { ["k": $0] } ?? [:])
    }

    static let insert = Change(entity: "E", id: "1", operation: .insert)

    @Test func `only clients with a non-empty set are told of it`() throws {
        var gateway = try Self.gateway()
        try gateway.change(Self.insert)
        func poll(_ record: ClientRecord) -> String {
            StalenessTests.poll(gateway, record, .after(1))
        }
        #expect(poll(Self.own(1)) == "k.recommendations")
        #expect(poll(Self.own(2)) == "k.recommendations")
        #expect(poll(Self.own(0)) == "")
        #expect(poll(client([widget()])) == "")
        #expect(StalenessTests.poll(gateway, Self.own(0), .everything) == "")
    }

    @Test func `a set is owed until it is confirmed, whatever the cursor`() throws {
        var gateway = try Self.gateway()
        try gateway.change(Self.insert)
        func poll(_ confirmed: UInt64) -> String {
            StalenessTests.poll(gateway, Self.own(1, confirmed: confirmed), .after(2))
        }
        #expect(poll(1) == "k.recommendations")
        #expect(poll(2) == "")
        let id = try gateway.open(Self.own(1, confirmed: 1), since: .after(2))
        #expect(gateway.taken(id) == ["k.recommendations"])
    }

    @Test func `a set confirmed below the floor is owed, for nothing is known of it`() throws {
        var gateway = try Self.gateway()
        let rules = try #require(gateway.decider.ruleSets["app"])
        gateway.shard = Shard(floor: 10)
        gateway.shard.install(rules)
        let record = Self.own(1, confirmed: 9)
        #expect(StalenessTests.poll(gateway, record, .after(10)) == "k.recommendations")
        #expect(StalenessTests.poll(gateway, Self.own(1, confirmed: 10), .after(10)) == "")
    }

    @Test func `a live change tells the set once and a confirmation takes effect at once`() throws {
        var gateway = try Self.gateway()
        let id = try gateway.open(Self.own(1, confirmed: 1), since: .after(1))
        try gateway.change(Self.insert)
        try gateway.change(Change(entity: "F"))
        #expect(gateway.taken(id) == ["k.recommendations id 2"])
        gateway.shard.lagging(id, since: 3)
        gateway.shard.recovered(id)
        #expect(gateway.taken(id) == ["k.recommendations"], "it may have been among what was lost")
        gateway.shard.confirmed(Self.own(1, confirmed: 3), app: "app")
        gateway.shard.lagging(id, since: 3)
        gateway.shard.recovered(id)
        #expect(gateway.taken(id) == [])
    }

    /// A confirmation carried the registration at its time. A stream opened with a later
    /// registration took it over without its keys, so their removal also removed keys of others.
    @Test func `a confirmation late on its way leaves a later registration alone`() throws {
        var gateway = SmallGateway(
            try catalog([kind([["entity": "E", "match": ["id": "$a"]]])]))
        let other = try gateway.open(
            client([widget(["a": .single("1")])], name: "other"), since: .after(1))
        let late = try gateway.open(client([widget(["a": .single("2")])]), since: .after(1))
        gateway.shard.confirmed(client([widget(["a": .single("1")])]), app: "app")
        gateway.shard.close(late)
        try gateway.change(Change(entity: "E", id: "1"))
        #expect(gateway.taken(other) == ["k(a=1) id 2"])
    }
}
