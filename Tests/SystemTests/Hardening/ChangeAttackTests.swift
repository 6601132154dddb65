import GatewayTestSupport
import Testing
import WidgetModel

/// Invalid changes: none may be accepted, not even in part.
@Suite("Change attacks", .othersUnaffected)
struct ChangeAttackTests {
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
