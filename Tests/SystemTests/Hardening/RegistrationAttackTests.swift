import GatewayTestSupport
import Testing
import WidgetModel

/// Registrations that ask for too much, or state what their sender may not state.
@Suite("Registration attacks", .othersUnaffected)
struct RegistrationAttackTests {
    private func put(
        _ client: String, _ body: JSONValue, token: String? = nil, method: String = "PUT"
    ) async throws -> TestHTTPAnswer {
        let target = try await Target.shared()
        return try await target.send(
            method, "clients/\(client)", token: token ?? target.backend, body)
    }

    private func token(_ client: String, _ attributes: JSONValue? = nil) async throws -> String {
        try await Target.shared().clientToken(client, attributes: attributes)
    }

    private func expectAbsent(_ client: String) async throws {
        let target = try await Target.shared()
        let answer = try await target.send("GET", "clients/\(client)", token: target.backend)
        expectRefusal(answer, 404, "unknown-client")
    }

    @Test("A client cannot keep its account by patching it away and back")
    func patchedAccount() async throws {
        let token = try await token("patched", ["account": "42"])
        #expect(try await put("patched", Documents.registration("p"), token: token).status == 201)
        _ = try await put("patched", ["attributes": nil], token: token, method: "PATCH")
        let answer = try await put(
            "patched", ["attributes": ["account": "s3cr3t"]], token: token, method: "PATCH")
        expectRefusal(answer, 403, "attribute-contradicts-token")
        let bare = try await self.token("patched")
        let other = try await put(
            "patched", ["attributes": ["account": "s3cr3t"]], token: bare, method: "PATCH")
        expectRefusal(
            other, 403, "attribute-not-vouched", says: "account", "selfDeclared")
    }

    @Test("A widget that depends on more than 256 keys is 422")
    func tooManyWidgetKeys() async throws {
        func list(_ count: Int) -> JSONValue { .array((0..<count).map { .string("s3cr3t-\($0)") }) }
        let widget: JSONValue = [
            "kind": "com.mygame.pairs", "family": "systemSmall",
            "parameters": ["first": list(17), "second": list(16)],
        ]
        let answer = try await put("keys", ["platform": "iOS", "widgets": [widget]])
        expectRefusal(answer, 422, "invalid", place: "widgets[0]", says: "256")
        try await expectAbsent("keys")
    }

    @Test("A client that depends on more than 1,000 keys in all is 422")
    func tooManyClientKeys() async throws {
        let widgets = (0..<20).map { number in
            Documents.widget(.array((0..<60).map { .string("s3cr3t-\(number)-\($0)") }))
        }
        let answer = try await put("allkeys", ["platform": "iOS", "widgets": .array(widgets)])
        expectRefusal(answer, 422, "invalid", place: "widgets", says: "1000")
        try await expectAbsent("allkeys")
    }

    @Test("A registration over 256 KiB is 413")
    func tooLarge() async throws {
        let padding = String(repeating: "s3cr3t", count: 50_000)
        let answer = try await put("large", ["platform": "iOS", "padding": .string(padding)])
        expectRefusal(answer, 413, "too-large", says: "262144")
    }

    @Test("Counts of several clients that overflow when added up do no harm")
    func overflowingCountsOfSeveral() async throws {
        var widget = try #require(Documents.widget("crowd").objectValue)
        widget["count"] = .integer(.max)
        for client in ["crowd-1", "crowd-2"] {
            let body: JSONValue = ["platform": "iOS", "widgets": [.object(widget)]]
            #expect(try await put(client, body).status == 201)
        }
        let target = try await Target.shared()
        let answer = try await target.send(
            "POST", "changes/explain", token: target.backend,
            type: "application/cloudevents+json",
            Documents.event("crowd", data: Documents.change("crowd")))
        #expect(answer.status == 200 && answer.text.contains(String(Int64.max)), "\(answer.text)")
    }

    @Test("A PATCH that removes a required member is 422 and changes nothing")
    func patchedAway() async throws {
        let target = try await Target.shared()
        try await target.register("required", character: "kept")
        let before = try await target.send("GET", "clients/required", token: target.backend)
        for patch in [["platform": nil], ["widgets": [["kind": "x"]]], ["widgets": 5]]
            as [JSONValue]
        {
            let answer = try await put("required", patch, method: "PATCH")
            expectRefusal(answer, 422, "invalid")
        }
        let after = try await target.send("GET", "clients/required", token: target.backend)
        #expect(after.body == before.body)
    }

    @Test("What is unknown in a registration is a warning")
    func unknownThings() async throws {
        let answer = try await put(
            "unknown",
            [
                "platform": "iOS", "mood": "s3cr3t",
                "widgets": [
                    Documents.widget("unknown"),
                    ["kind": "com.mygame.gone", "family": "systemSmall"],
                    ["kind": .string(Documents.kind), "family": "systemGigantic"],
                    [
                        "kind": .string(Documents.kind), "family": "systemSmall", "colour": "red",
                        "parameters": ["weapon": "s3cr3t"],
                    ],
                ],
                "delivery": [["type": "pigeon"], ["type": "stream"]],
            ])
        #expect(answer.status == 201)
        let places = (answer["warnings"]?.arrayValue ?? []).compactMap {
            $0.objectValue?["place"]?.stringValue
        }
        for place in [
            "mood", "widgets[1].kind", "widgets[2].family", "widgets[3].colour",
            "widgets[3].parameters.weapon", "delivery[0].type",
        ] {
            #expect(places.contains(place), "\(places)")
        }
        #expect(!answer.text.contains(Target.secret))
    }

    @Test(
        "A client id with slashes, dots or other characters never reaches another path",
        arguments: [
            "a%2Fb", "a%2freloads", "..%2Fcatalog", "a%00b", "a%20b", "%E2%82%AC", "a%0D%0Ab",
        ])
    func encodedPath(_ client: String) async throws {
        let target = try await Target.shared()
        let request = """
            PUT /v1/apps/\(Target.app)/clients/\(client) HTTP/1.1\r
            Host: localhost\r
            Authorization: Bearer \(target.backend)\r
            Content-Type: application/json\r
            Content-Length: 18\r
            \r
            {"platform":"iOS"}
            """
        let conversation = try await target.converse(Array(request.utf8), answers: 1)
        expectRefusal(
            try #require(conversation.answers.first), 422, "invalid", place: "client",
            says: "A-Z a-z 0-9 . _ ~ -")
    }

    @Test("A path that is no percent-encoded UTF-8 is 400", arguments: ["a%FFb", "a%zz", "a%2"])
    func brokenPath(_ client: String) async throws {
        let target = try await Target.shared()
        for suffix in ["", "/reloads"] {
            let request = """
                GET /v1/apps/\(Target.app)/clients/\(client)\(suffix) HTTP/1.1\r
                Host: localhost\r
                Authorization: Bearer \(target.backend)\r
                \r

                """
            let conversation = try await target.converse(Array(request.utf8), answers: 1)
            expectRefusal(try #require(conversation.answers.first), 400, "malformed")
        }
    }

    @Test("A push token is masked whoever asks, and the mask is no token")
    func pushToken() async throws {
        let target = try await Target.shared()
        let pushToken = String(repeating: "0123" + Target.pushToken, count: 6)
        let address: JSONValue = [
            "type": "apns", "pushType": "widgets", "token": .string(pushToken),
            "environment": "sandbox", "topic": "com.mygame",
        ]
        func activity(_ number: Int) -> JSONValue {
            let token = "01234567" + String(repeating: Target.pushToken, count: 6)
            return [
                "type": "apns", "pushType": "liveactivity",
                "token": .string(token + String(10_000_000 + number)),
            ]
        }
        let body: JSONValue = [
            "platform": "iOS", "attributes": ["account": "push"], "delivery": [address],
            "activities": [["type": "Battle", "id": "a", "delivery": activity(1)]],
            "activityStarts": [["type": "Battle", "delivery": activity(2)]],
        ]
        let answer = try await put("pushed", body)
        #expect(answer.status == 201, "\(answer.text)")
        let shown = try await target.send("GET", "clients/pushed", token: target.backend)
        let listed = try await target.send(
            "GET", "clients?attribute=account:push", token: target.backend)
        let own = try await target.send(
            "GET", "clients/pushed", token: target.clientToken("pushed"))
        for answer in [shown, listed, own] {
            #expect(answer.status == 200)
            #expect(!answer.text.contains(Target.pushToken))
        }
        #expect(shown["activityStarts"]?.arrayValue?.count == 1)
        let delivery = try #require(shown["delivery"])
        let patch = try await put("pushed", ["delivery": delivery], method: "PATCH")
        expectRefusal(patch, 422, "invalid", place: "delivery[0].token")
    }
}

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
