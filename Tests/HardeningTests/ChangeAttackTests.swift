import GatewayTestSupport
import Testing
import WidgetModel

/// Invalid changes: none may be accepted, not even in part.
@Suite("Change attacks", .othersUnaffected)
struct ChangeAttackTests {
    @Test("Members of wrong types are 422, each named with its place")
    func wrongTypes() async throws {
        let target = try await Target.shared()
        let answer = try await target.post([
            "specversion": "1.0", "type": [], "source": [:], "id": 5, "data": ["s3cr3t"],
        ])
        for place in ["type", "source", "id", "data"] {
            expectRefusal(answer, 422, "invalid", place: place, says: "must be")
        }
        let inner = try await target.post(
            Documents.event(
                "types",
                data: [
                    "entity": 1, "id": ["s3cr3t"], "operation": "explode", "properties": "avatar",
                    "attributes": ["s3cr3t"], "urgency": 9,
                ]))
        for member in ["entity", "id", "operation", "properties", "attributes", "urgency"] {
            expectRefusal(inner, 422, "invalid", place: "data.\(member)", says: "must be")
        }
    }

    @Test("A specversion that is no string is 422", arguments: [1, true, ["1.0"]] as [JSONValue])
    func wrongVersion(_ version: JSONValue) async throws {
        let target = try await Target.shared()
        let answer = try await target.post(
            Documents.event("version", ["specversion": version]))
        expectRefusal(answer, 422, "invalid", place: "specversion", says: "must be")
    }

    @Test(
        "A time that no calendar has is 422",
        arguments: [
            "yesterday", "2026-99-99T99:99:99Z", "2026-02-30T00:00:00Z", "2026-11-21 09:30:00",
        ])
    func wrongTime(_ time: String) async throws {
        let target = try await Target.shared()
        let answer = try await target.post(
            Documents.event("time", ["time": .string(time)]))
        expectRefusal(answer, 422, "invalid", place: "time", says: "RFC 3339")
    }

    @Test(
        "NUL in any text of an event is 422, never stored",
        arguments: [
            ("id", Documents.event("a\u{0}b")),
            ("source", Documents.event("nul", ["source": "s\u{0}"])),
            ("type", Documents.event("nul", ["type": "t\u{0}"])),
            ("time", Documents.event("nul", ["time": "2026-11-21T09:30:00Z\u{0}"])),
            ("data.entity", Documents.event("nul", data: ["entity": "CharacterDetail\u{0}"])),
            (
                "data.id",
                Documents.event("nul", data: ["entity": "CharacterDetail", "id": "p\u{0}"])
            ),
            (
                "data.properties[0]",
                Documents.event("nul", data: ["entity": "E", "properties": ["avatar\u{0}"]])
            ),
            (
                "data.attributes.account",
                Documents.event("nul", data: ["entity": "E", "attributes": ["account": "4\u{0}2"]])
            ),
            (
                "data.attributes.account[0]",
                Documents.event(
                    "nul", data: ["entity": "E", "attributes": ["account": ["4\u{0}2"]]])
            ),
        ])
    func nul(_ place: String, _ event: JSONValue) async throws {
        let target = try await Target.shared()
        expectRefusal(try await target.post(event), 422, "invalid", place: place, says: "character")
        let batch = try await target.post(batch: [event])
        expectRefusal(batch, 422, "invalid", place: "[0].\(place)")
    }

    @Test("An attribute called id is 422")
    func attributeID() async throws {
        let target = try await Target.shared()
        let answer = try await target.post(
            Documents.event("attr", data: ["entity": "E", "attributes": ["id": "s3cr3t"]]))
        expectRefusal(answer, 422, "invalid", place: "data.attributes.id", says: "member `id`")
    }

    @Test("Names and values over 256 bytes are 422")
    func longStrings() async throws {
        let target = try await Target.shared()
        let long = String(repeating: "s3cr3t", count: 43)
        let answer = try await target.post(
            Documents.event(
                long, data: ["entity": .string(long), "id": .string(long)],
                ["source": .string(long)]))
        for place in ["id", "source", "data.entity", "data.id"] {
            expectRefusal(answer, 422, "invalid", place: place, says: "at most 256")
        }
    }

    @Test("1,001 events are 413 and none of them is taken")
    func tooManyEvents() async throws {
        let target = try await Target.shared()
        let answer = try await target.post(
            batch: (0..<1001).map { Documents.event("many-\($0)") })
        expectRefusal(answer, 413, "too-large", says: "at most 1000")
        let again = try await target.post(Documents.event("many-0"))
        #expect(again["accepted"] == 1, "it was not taken before")
    }

    @Test("One event over 64 KiB is 413, alone and within a batch")
    func bigEvent() async throws {
        let target = try await Target.shared()
        let padding = String(repeating: "s3cr3t", count: 11_000)
        let big = Documents.event(
            "big", data: ["entity": "CharacterDetail", "padding": .string(padding)])
        expectRefusal(try await target.post(big), 413, "too-large", says: "65536")
        let batch = try await target.post(batch: [Documents.event("beside-big"), big])
        expectRefusal(batch, 413, "too-large", says: "65536")
        let again = try await target.post(Documents.event("beside-big"))
        #expect(again["accepted"] == 1, "the batch was not taken in part")
    }

    @Test("An event id used again with other data is 422, and nothing changes")
    func reusedID() async throws {
        let target = try await Target.shared()
        let first = Documents.event("reused", data: Documents.change("reused"))
        let other = Documents.event("reused", data: Documents.change("s3cr3t"))
        let posted = try await target.post(first)
        #expect(posted["accepted"] == 1)
        expectRefusal(try await target.post(other), 422, "event-id-reused", place: "id")
        let batch = try await target.post(
            batch: [Documents.event("reused-beside"), other])
        expectRefusal(batch, 422, "event-id-reused", place: "[1].id")
        let again = try await target.post(first)
        #expect(again["duplicates"] == 1)
        #expect(again["sequence"] == posted["sequence"])
        let beside = try await target.post(Documents.event("reused-beside"))
        #expect(beside["accepted"] == 1, "the batch was not taken in part")
    }

    @Test("An event id used twice with other data within one batch is 422")
    func reusedInBatch() async throws {
        let target = try await Target.shared()
        let answer = try await target.post(batch: [
            Documents.event("twice", data: Documents.change("a")),
            Documents.event("twice", data: Documents.change("b")),
        ])
        expectRefusal(answer, 422, "event-id-reused", place: "[1].id")
        let after = try await target.post(
            Documents.event("twice", data: Documents.change("b")))
        #expect(after["accepted"] == 1, "neither was taken")
    }

    @Test("A batch with one bad event is taken neither in the log nor by a poll")
    func badBatch() async throws {
        let target = try await Target.shared()
        let cursor = try await target.register("batch")["cursor"]?.stringValue ?? ""
        let answer = try await target.post(batch: [
            Documents.event("good-1", data: Documents.change("batch")),
            Documents.event("bad", data: ["id": "s3cr3t"]),
            Documents.event("good-2", data: Documents.change("batch")),
        ])
        expectRefusal(answer, 422, "invalid", place: "[1].data.entity", says: "is required")
        let token = try target.clientToken("batch")
        let poll = try await target.send(
            "GET", "clients/batch/reloads?since=\(cursor)", token: token)
        #expect(poll["notifications"] == [], "nothing is stale")
        for id in ["good-1", "good-2"] {
            let again = try await target.post(
                Documents.event(id, data: Documents.change("batch")))
            #expect(again["accepted"] == 1, "it was not taken before")
        }
        let stale = try await target.send(
            "GET", "clients/batch/reloads?since=\(cursor)", token: token)
        #expect(stale["notifications"]?.arrayValue?.count == 1, "and now it is")
    }

    @Test("More than 64 keys by one rule are 422")
    func tooManyKeys() async throws {
        let target = try await Target.shared()
        func values(_ count: Int) -> JSONValue {
            .array((0..<count).map { .string("s3cr3t-\($0)") })
        }
        func event(_ id: String, _ first: Int, _ second: Int) -> JSONValue {
            Documents.event(
                id,
                data: [
                    "entity": "Pair",
                    "attributes": ["first": values(first), "second": values(second)],
                ])
        }
        let most = try await target.post(event("pairs", 8, 8))
        #expect(most.status == 202, "\(most.text)")
        let answer = try await target.post(event("pairs-over", 8, 9))
        expectRefusal(answer, 422, "invalid", says: "com.mygame.pairs", "72", "at most 64")
        let long = try await target.post(event("pairs-long", 65, 1))
        expectRefusal(
            long, 422, "invalid", place: "data.attributes.first", says: "at most 64")
    }

    @Test("Binary mode without its headers is 422, each named")
    func binaryWithoutHeaders() async throws {
        let target = try await Target.shared()
        let answer = try await target.send(
            "POST", "changes", token: target.backend, Documents.change("s3cr3t"))
        for name in ["specversion", "type", "source", "id"] {
            expectRefusal(answer, 422, "invalid", place: "ce-\(name)", says: "is required")
        }
    }

    @Test("Binary mode with headers that are no UTF-8, hold NUL or contradict is 422")
    func binaryHeaders() async throws {
        let target = try await Target.shared()
        for (name, value) in [
            ("ce-id", "%FF"), ("ce-id", "a%00b"), ("ce-id", "%zz"), ("ce-source", "a%20b"),
            ("ce-specversion", "2.0"), ("ce-datacontenttype", "text/xml"), ("ce-time", "soon"),
        ] {
            var headers = [
                "ce-specversion": "1.0", "ce-type": "t", "ce-source": "s", "ce-id": "binary",
            ]
            headers[name] = value
            let answer = try await target.send(
                "POST", "changes", token: target.backend, type: "application/json",
                headers: headers.map { ($0.key, $0.value) }, Documents.change("s3cr3t"))
            expectRefusal(answer, 422, "invalid", place: name)
        }
    }

    @Test(
        "A reload of nothing, of both, or of an unknown kind is 422",
        arguments: [
            [:], ["all": true, "kind": "com.mygame.game-status"], ["all": false], ["kind": 5],
            ["kind": "com.mygame.s3cr3t"], ["kind": "com.mygame.game-status\u{0}"], [],
        ] as [JSONValue])
    func wrongReload(_ body: JSONValue) async throws {
        let target = try await Target.shared()
        let answer = try await target.send("POST", "reloads", token: target.backend, body)
        expectRefusal(answer, 422, "invalid")
    }
}
