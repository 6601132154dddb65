import GatewayTestSupport
import Testing
import WidgetModel

/// Live Activities that ask for too much, or that their sender may not have.
@Suite("Live Activity attacks", .othersUnaffected)
struct ActivityAttackTests {
    // MARK: Starts

    private func start(_ id: String, _ changes: JSONValue = [:]) async throws -> TestHTTPAnswer {
        let document: JSONValue = [
            "id": .string(id), "type": "Battle", "attribute": "account:42",
            "attributes": ["hero": "s3cr3t"], "alert": ["title": "s3cr3t"],
        ]
        let target = try await Target.shared()
        return try await target.send(
            "POST", "activities", token: target.backend, type: "application/json",
            document.merging(patch: changes))
    }

    @Test(
        "A start that is not as it must be is 422",
        arguments: [
            ["id": "s3cr3t/.."], ["id": "s3cr3t\u{0}"], ["type": "s3cr3t"],
            ["attribute": ":s3cr3t"], ["alert": "s3cr3t"], ["attributes": ["s3cr3t"]],
            ["channel": "s3cr3t/../42"], ["urgency": "s3cr3t"], ["contentState": ["s3cr3t": 1]],
        ] as [JSONValue])
    func wrongStart(_ changes: JSONValue) async throws {
        expectRefusal(try await start("wrong", changes), 422, "invalid")
    }

    @Test("A start over 3,072 bytes is 413")
    func largeStart() async throws {
        let padding = JSONValue.string(String(repeating: "s3cr3t", count: 512))
        let answer = try await start("large", ["attributes": ["padding": padding]])
        expectRefusal(answer, 413, "too-large", says: "3072")
        #expect(try await start("large")["duplicate"] == false, "it was not taken before")
    }

    // MARK: Registrations

    private func put(
        _ client: String, _ members: JSONValue, token: String? = nil
    ) async throws -> TestHTTPAnswer {
        let target = try await Target.shared()
        let body: JSONValue = ["platform": "iOS"]
        return try await target.send(
            "PUT", "clients/\(client)", token: token ?? target.backend,
            body.merging(patch: members))
    }

    @Test("A client that would have a broadcast channel pushed to is 403")
    func channelOfAClient() async throws {
        let members: JSONValue = [
            "activities": [
                [
                    "type": "Battle", "id": "a", "attributes": ["hero": "s3cr3t"],
                    "delivery": [
                        "type": "apns", "pushType": "liveactivity", "channel": "c2VjcmV0",
                    ],
                ]
            ]
        ]
        let token = try await Target.shared().clientToken("broadcaster")
        let answer = try await put("broadcaster", members, token: token)
        expectRefusal(answer, 403, "webhook-needs-backend", says: "clients:write")
        #expect(try await put("broadcaster", members).status == 201)
        // It keeps what a backend gave it.
        #expect(try await put("broadcaster", members, token: token).status == 200)
    }
}
