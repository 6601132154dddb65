import Testing

@testable import WidgetModel

@Suite struct CloudEventTests {
    static let structured = "application/cloudevents+json"
    static let batch = "application/cloudevents-batch+json"
    static let event: JSONValue = [
        "specversion": "1.0", "type": "t", "source": "/s", "id": "1",
        "time": "2026-11-21T09:30:00.5+01:00", "data": ["entity": "E", "id": 7],
    ]

    static func post(
        _ contentType: String?, _ body: JSONValue, headers: [(name: String, value: String)] = [],
        limits: Limits = Limits()
    ) throws(DocumentRefusal) -> CloudEventPost {
        try CloudEventPost(
            contentType: contentType, headers: headers, body: body.serialized, limits: limits)
    }

    static func event(_ changes: JSONObject) -> JSONValue {
        event.merging(patch: .object(changes))
    }

    /// Returns the places of the faults of a document that is well-formed but invalid.
    static func places(_ body: () throws -> Void) -> [String] {
        do {
            try body()
            return ["accepted"]
        } catch DocumentRefusal.wrong(let faults) {
            return faults.list.map(\.place)
        } catch {
            return ["\(error)"]
        }
    }

    /// One byte more than a name or value may have.
    static let long = JSONValue.string(String(repeating: "x", count: 257))

    static let headers: [(name: String, value: String)] = [
        ("ce-specversion", "1.0"), ("ce-type", "t"), ("ce-source", "/s"), ("ce-id", "1"),
    ]

    @Test func `the three modes say the same`() throws {
        let one = try Self.post(Self.structured, Self.event).events
        let many = try Self.post(Self.batch + "; charset=utf-8", [Self.event, Self.event]).events
        let binary = try Self.post(
            "application/json", ["entity": "E", "id": "7"],
            headers: Self.headers + [("ce-time", "2026-11-21T09:30:00.5+01:00"), ("ce-x", "y")]
        ).events
        #expect(one == binary && many == one + one)
        #expect(one[0].change == Change(entity: "E", id: "7"))
        #expect(one[0].time == "2026-11-21T09:30:00.5+01:00")
        #expect(try Self.post(Self.batch, []).events.isEmpty)
    }

    @Test func `an event written is read back the same`() throws {
        let change = Change(
            entity: "E", id: "1", operation: .delete, properties: ["p"],
            attributes: ["a": ["1"], "b": ["1", "2"]], urgency: .veryLow)
        let event = CloudEvent(source: "/s", id: "é", time: "2026-01-01T00:00:00Z", change: change)
        #expect(try Self.post(Self.structured, event.json).events == [event])
        #expect(
            try Change(Change(entity: "E").json, at: "", limits: Limits()) == Change(entity: "E"))
    }

    @Test func `the trace an event belongs to is kept as it was sent, in each mode`() throws {
        let (trace, state) = ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1")
        let event = Self.event(["traceparent": .string(trace), "tracestate": .string(state)])
        let data: JSONValue = ["entity": "E", "id": 7]
        let fields = [("ce-traceparent", trace), ("ce-tracestate", state)]
        for post in [
            try Self.post(Self.structured, event), try Self.post(Self.batch, [event]),
            try Self.post("application/json", data, headers: Self.headers + fields),
        ] {
            let read = try #require(post.events.first)
            #expect(read.traceparent == trace && read.tracestate == state)
            #expect(read.json.objectValue?["traceparent"]?.stringValue == trace)
        }
    }

    @Test(
        arguments: [
            ["traceparent": 7], ["traceparent": ""], ["traceparent": "nonsense\u{1}"],
            ["traceparent": .string(String(repeating: "0", count: 5_000))], ["tracestate": "a=1"],
            ["traceparent": ["a"], "tracestate": [:]],
            ["traceparent": "x", "tracestate": .string(String(repeating: "a", count: 5_000))],
        ] as [JSONObject])
    func `whatever stands for a trace, the event is taken, and it is bounded`(
        changes: JSONObject
    ) throws {
        let read = try #require(try Self.post(Self.structured, Self.event(changes)).events.first)
        #expect((read.traceparent ?? "").utf8.count <= 1_024)
        #expect((read.tracestate ?? "").utf8.count <= 1_024)
        #expect(read.tracestate == nil || read.traceparent != nil)
    }

    @Test func `data may be base64 of JSON`() throws {
        let encoded = Self.event(["data": nil, "data_base64": "eyJlbnRpdHkiOiJFIn0="])
        #expect(try Self.post(Self.structured, encoded).events[0].change == Change(entity: "E"))
        for wrong: JSONValue in ["eyJlbnRpdHkiOiJFIn0", "####", "bm8=", 1] {
            let event = Self.event(["data": nil, "data_base64": wrong])
            #expect(Self.places { _ = try Self.post(Self.structured, event) } == ["data_base64"])
        }
        let both = Self.event(["data_base64": "e30="])
        #expect(Self.places { _ = try Self.post(Self.structured, both) }.contains("data_base64"))
    }

    @Test(
        arguments: [
            (["specversion": nil], "specversion"), (["specversion": "0.3"], "specversion"),
            (["type": nil], "type"), (["type": ""], "type"), (["source": nil], "source"),
            (["source": 1], "source"), (["source": "a b"], "source"), (["id": nil], "id"),
            (["id": ""], "id"), (["id": "\u{7}"], "id"), (["time": "yesterday"], "time"),
            (["time": "2026-11-21 09:30:00"], "time"), (["time": "2026-11-21T09:30:00"], "time"),
            (["datacontenttype": "text/plain"], "datacontenttype"), (["subject": 1], "subject"),
            (["data": nil], "data"), (["data": 1], "data"),
            (["data": ["entity": nil]], "data.entity"),
            (["data": ["entity": ""]], "data.entity"),
            (["data": ["operation": "upsert"]], "data.operation"),
            (["data": ["urgency": "soon"]], "data.urgency"), (["data": ["id": ["1"]]], "data.id"),
            (["data": ["properties": "p"]], "data.properties"),
            (["data": ["properties": ["p", 1]]], "data.properties[1]"),
            (["data": ["attributes": ["a": [:]]]], "data.attributes.a"),
            (["data": ["attributes": ["a": []]]], "data.attributes.a"),
            (["data": ["attributes": ["a": [[]]]]], "data.attributes.a[0]"),
            (["data": ["attributes": ["id": "1"]]], "data.attributes.id"),
            (["data": ["attributes": ["a"]]], "data.attributes"),
            (["specversion": 1], "specversion"), (["type": []], "type"),
            (["time": "2026-02-30T00:00:00Z"], "time"), (["time": "2026-99-99T99:99:99Z"], "time"),
            (["source": "s\u{0}"], "source"), (["type": "t\u{0}"], "type"),
            (["time": "2026-11-21T09:30:00Z\u{0}"], "time"),
            (["data": ["entity": "E\u{0}"]], "data.entity"),
            (["data": ["id": "1\u{0}"]], "data.id"),
            (["data": ["properties": ["p\u{0}"]]], "data.properties[0]"),
            (["data": ["attributes": ["a": "4\u{0}2"]]], "data.attributes.a"),
            (["data": ["attributes": ["a": ["4\u{0}2"]]]], "data.attributes.a[0]"),
            (["id": long], "id"), (["source": long], "source"),
            (["data": ["entity": long]], "data.entity"), (["data": ["id": long]], "data.id"),
        ] as [(JSONObject, String)])
    func `a wrong event is refused with its place`(changes: JSONObject, place: String) {
        let event = Self.event(changes)
        #expect(Self.places { _ = try Self.post(Self.structured, event) } == [place])
        #expect(
            Self.places { _ = try Self.post(Self.batch, [Self.event, event]) } == ["[1].\(place)"])
    }

    @Test func `every fault of every event of a batch is listed`() {
        let wrong = Self.event(["id": nil, "data": ["entity": 1, "urgency": 2]])
        #expect(
            Self.places { _ = try Self.post(Self.batch, [wrong, Self.event, 3, wrong]) } == [
                "[0].id", "[0].data.entity", "[0].data.urgency", "[2]", "[3].id",
                "[3].data.entity", "[3].data.urgency",
            ])
        let many = JSONValue.array(Array(repeating: 0, count: 150))
        do {
            _ = try Self.post(Self.batch, many)
        } catch DocumentRefusal.wrong(let faults) {
            #expect(faults.count == 150 && faults.list.count == Faults.keptMax)
        } catch {
            Issue.record("\(error)")
        }
    }

    @Test func `binary mode names the headers`() {
        func places(_ headers: [(name: String, value: String)]) -> [String] {
            Self.places { _ = try Self.post("application/json", ["entity": "E"], headers: headers) }
        }
        #expect(places([]) == ["ce-specversion", "ce-type", "ce-source", "ce-id"])
        #expect(places(Self.headers + [("ce-time", "no")]) == ["ce-time"])
        #expect(places(Self.headers + [("ce-datacontenttype", "x/y")]) == ["ce-datacontenttype"])
        #expect(places(Array(Self.headers.dropLast()) + [("ce-id", "%zz")]) == ["ce-id"])
        #expect(places(Array(Self.headers.dropLast()) + [("ce-id", "%FF")]) == ["ce-id"])
        #expect(places(Array(Self.headers.dropLast()) + [("ce-id", "%00")]) == ["ce-id"])
        #expect(places(Array(Self.headers.dropLast()) + [("ce-id", "%e")]) == ["ce-id"])
    }

    @Test(arguments: [
        ("plain", "plain"), ("Euro%20%E2%82%AC", "Euro €"), (#""a\"b""#, "a\"b"), ("%25%32", "%2"),
        (#""""#, ""), ("\"", "\""), ("100%25", "100%"),
    ])
    func `header values are unquoted and decoded once`(value: String, expected: String) {
        #expect(CloudEventPost.decodeHeader(value) == expected)
    }

    /// CloudEvents' Python SDK sends none unless it is given one.
    @Test func `without a media type binary mode is JSON, and anything else is not read`() throws {
        let data: JSONValue = ["entity": "E", "id": 7]
        let stated = try Self.post("application/json", data, headers: Self.headers)
        #expect(try Self.post(nil, data, headers: Self.headers).events == stated.events)
        #expect(Self.places { _ = try Self.post(nil, data, headers: [("ce-id", "1")]) }.count == 3)
        #expect {
            _ = try Self.post(nil, Self.event, headers: [])
        } throws: { error in
            guard case .unsupportedMediaType(let detail) = error as? DocumentRefusal else {
                return false
            }
            return detail.hasPrefix("Content-Type is missing")
        }
    }

    @Test func `types that are not read, sizes and malformed bodies are told apart`() {
        func refusal(
            _ type: String, _ body: JSONValue, _ limits: Limits = Limits()
        ) -> DocumentRefusal? {
            do {
                _ = try Self.post(type, body, headers: Self.headers, limits: limits)
                return nil
            } catch {
                return error
            }
        }
        for type in [
            "text/plain", "application/cloudevents", "application/cloudevents+xml",
            "application/cloudevents-batch", "application/cloudevents-batch+avro",
        ] {
            guard case .unsupportedMediaType = refusal(type, Self.event) else {
                Issue.record("\(type) was read")
                continue
            }
        }
        var limits = Limits()
        limits.eventBytesMax = 300
        limits.postBytesMax = 1_000
        limits.postEventsMax = 3
        let large = Self.event(["data": ["x": .string(String(repeating: "x", count: 300))]])
        for (type, body) in [
            (Self.structured, large), ("application/json", large), (Self.batch, .array([large])),
            (Self.batch, .array(Array(repeating: Self.event, count: 4))),
            (Self.batch, .array(Array(repeating: 0, count: 1_000))),
        ] as [(String, JSONValue)] {
            guard case .tooLarge = refusal(type, body, limits) else {
                Issue.record("\(type) was taken")
                continue
            }
        }
        #expect(throws: DocumentRefusal.self) {
            try CloudEventPost(
                contentType: Self.structured, headers: [], body: Array("{".utf8), limits: Limits())
        }
        guard case .wrong = refusal(Self.batch, Self.event) else {
            Issue.record("an object is no batch")
            return
        }
    }

    @Test func `two ways of writing one letter stay two values`() throws {
        let change: JSONValue = ["entity": "E", "attributes": ["a": ["é", "e\u{301}", "é"]]]
        let values = try Change(change, at: "", limits: Limits()).attributes["a"] ?? []
        #expect(values.count == 2)
    }

    @Test func `scalars become their text`() throws {
        let change: JSONValue = [
            "entity": "E", "id": true, "attributes": ["a": [1, .number(1.5), .number(2), "x"]],
        ]
        let read = try Change(change, at: "", limits: Limits())
        #expect(read.id == "true")
        #expect(read.attributes["a"] == ["1", "1.5", "2", "x"])
    }
}

@Suite struct ChangeWritingTests {
    @Test func aChangeIsWrittenAsItsTreeIs() {
        for id in [nil, "", "7\"\n"] as [String?] {
            for operation in Change.Operation.allCases {
                for properties in [[], ["a"], ["a", "b\\", "\u{1F}"]] {
                    for attributes in [[:], ["b": ["x"], "a\"": ["1", "2"]]] {
                        for urgency in Urgency.allCases {
                            let change = Change(
                                entity: "E\u{E4}", id: id, operation: operation,
                                properties: properties, attributes: attributes, urgency: urgency)
                            var bytes: [UInt8] = []
                            change.append(to: &bytes)
                            #expect(bytes == change.json.serialized)
                        }
                    }
                }
            }
        }
    }
}
