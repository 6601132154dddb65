import Testing
import WidgetModel

/// Requests to start Live Activities.
@Suite struct ActivityStartTests {
    private static let document: JSONObject = [
        "id": "battle-17", "type": "Battle", "attribute": "account:4:2", "channel": "match-7",
        "attributes": ["hero": "panda", "level": 3, "items": ["1", 2], "place": ["x": 1]],
        "alert": ["title": "Battle"], "urgency": "high", "ttl": 60,
    ]

    private static func read(_ changes: JSONObject = [:]) throws(Faults) -> ActivityStart {
        let document = JSONValue.object(document).merging(patch: .object(changes))
        return try ActivityStart(document, limits: Limits())
    }

    private static func faults(_ changes: JSONObject) -> [String] {
        faultsFound { _ = try read(changes) }.map(\.place)
    }

    @Test func `a request is read with what it states, and otherwise with defaults`() throws {
        let start = try Self.read()
        #expect(start.id == "battle-17" && start.type == "Battle" && start.channel == "match-7")
        #expect(start.attribute?.name == "account" && start.attribute?.value == "4:2")
        #expect(start.attributes["place"] == ["x": 1] && start.alert == ["title": "Battle"])
        #expect(start.urgency == .high && start.ttl == 60 && start.channels.isEmpty)
        let least = try ActivityStart(
            ["id": "1", "type": "A", "channel": "c", "alert": nil, "ttl": nil], limits: Limits())
        #expect(least.attribute == nil && least.attributes == [:] && least.alert == nil)
        #expect(least.urgency == .normal && least.ttl == 900)
    }

    @Test func `the same request is the same, whatever the order of its members`() throws {
        func start(_ text: String) throws -> ActivityStart {
            try ActivityStart(try JSONValue(parsing: text), limits: Limits())
        }
        let first = try start(
            #"{"id":"1","type":"A","channel":"c","attributes":{"a":1,"b":[{"c":1,"d":2}]}}"#)
        let second = try start(
            #"{"attributes":{"b":[{"d":2,"c":1}],"a":1},"channel":"c","type":"A","id":"1"}"#)
        #expect(first.json == second.json)
        #expect(try ActivityStart(first.json, limits: .none).json == first.json)
        let other = try start(
            #"{"id":"1","type":"A","channel":"c","attributes":{"a":2,"b":[{"c":1,"d":2}]}}"#)
        #expect(other.json != first.json)
    }

    @Test func `rules compare the attributes that they can compare, in the form of parameters`()
        throws
    {
        let values = try Self.read(["attributes": ["": "x", "flag": true]]).attributes.comparable
        #expect(
            values == [
                "hero": .single("panda"), "level": .single("3"), "items": .list(["1", "2"]),
                "flag": .single("true"),
            ])
        let many = JSONObject(uniqueMembers: (0..<33).map { .init(name: "\($0)", value: 1) })
        #expect(many.comparable.count == 32)
    }

    @Test func `it concerns clients that have the attribute, byte for byte`() throws {
        let start = try Self.read(["attribute": "name:caf\u{E9}"])
        #expect(start.concerns(["name": ["other", "caf\u{E9}"]]))
        #expect(!start.concerns(["name": ["cafe\u{301}"]]) && !start.concerns(["other": ["x"]]))
        #expect(try !Self.read(["attribute": nil]).concerns(["name": ["caf\u{E9}"]]))
    }

    @Test(
        arguments: [
            (["id": nil], "id"), (["id": "a b"], "id"), (["id": 1], "id"), (["type": ""], "type"),
            (["attribute": "account"], "attribute"), (["attribute": ":42"], "attribute"),
            (["attribute": "a:"], "attribute"), (["attribute": 42], "attribute"),
            (["attribute": nil, "channel": nil], "attribute"), (["channel": "a/b"], "channel"),
            (["attributes": []], "attributes"), (["alert": nil], "alert"),
            (["alert": "Battle"], "alert"), (["urgency": "now"], "urgency"), (["ttl": 0], "ttl"),
            (["ttl": 43_201], "ttl"), (["ttl": "60"], "ttl"), (["new": 1], "new"),
            (["channels": ["production": "AAAA"]], "channels"),
        ] as [(JSONObject, String)])
    func `a fault is told with its place`(changes: JSONObject, place: String) {
        #expect(Self.faults(changes) == [place])
    }

    @Test func `all faults are told`() {
        let places = Self.faults(["id": nil, "type": nil, "ttl": 0, "new": 1])
        #expect(places == ["id", "type", "ttl", "new"])
    }
}
