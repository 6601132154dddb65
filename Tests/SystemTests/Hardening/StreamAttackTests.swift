import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// Forged cursors, and acknowledgements that confirm nothing.
@Suite("Stream, cursor and acknowledgement attacks", .othersUnaffected)
struct StreamAttackTests {
    @Test(
        "A cursor that is garbage, forged or another gateway's makes everything stale",
        arguments: [
            "garbage", "0", "-1", "99999999999999999999", "AAAAARGpjN8AAAAAAAAACNcpu2QrFJ89",
            "%00", "//////////////////////////////", "' OR 1=1 --",
        ])
    func unreadableCursor(_ cursor: String) async throws {
        let target = try await Target.shared()
        try await target.register("cursor")
        let token = try target.clientToken("cursor")
        let poll = try await target.send(
            "GET", "clients/cursor/reloads", token: token, headers: [("Last-Event-ID", cursor)])
        #expect(poll.status == 200)
        #expect(poll["notifications"]?.arrayValue?.count == 1)
        #expect(poll.header("timeline-cursor") ?? "" == "", "it resumed from nothing")
        let stream = target.process.stream(
            app: Target.app, client: "cursor", token: token, from: cursor)
        #expect(stream.head()?.status == 200)
        guard case .block(let block) = stream.next() else {
            Issue.record("nothing came")
            return
        }
        #expect(block.data != nil, "everything is stale for it")
        stream.close()
    }

    @Test("A cursor with one letter changed is not believed")
    func forgedCursor() async throws {
        let target = try await Target.shared()
        let cursor = try await target.register("forged")["cursor"]?.stringValue ?? ""
        let token = try target.clientToken("forged")
        func poll(_ cursor: String) async throws -> Int? {
            try await target.send(
                "GET", "clients/forged/reloads", token: token, headers: [("Last-Event-ID", cursor)]
            )["notifications"]?.arrayValue?.count
        }
        #expect(try await poll(cursor) == 0, "the real one holds")
        for place in 0..<cursor.count - 1 {
            var letters = Array(cursor)
            letters[place] = letters[place] == "A" ? "B" : "A"
            #expect(try await poll(String(letters)) == 1)
        }
    }

    @Test("Another gateway's cursor makes everything stale")
    func otherGatewaysCursor() async throws {
        let other = try await ConfiguredTarget.shared()
        let registered = try await other.http().send(
            "PUT", "/v1/apps/com.a/clients/cursor",
            token: other.operations.token(app: "com.a", scope: "clients:write"),
            body: #"{"platform": "iOS"}"#)
        let cursor = try #require(registered["cursor"]?.stringValue)
        let target = try await Target.shared()
        try await target.register("foreign")
        let poll = try await target.send(
            "GET", "clients/foreign/reloads?since=\(cursor)",
            token: target.clientToken("foreign"))
        #expect(poll["notifications"]?.arrayValue?.count == 1)
        let acknowledged = try await target.send(
            "POST", "clients/foreign/acks", token: target.clientToken("foreign"),
            ["cursor": .string(cursor)])
        expectRefusal(acknowledged, 422, "invalid", place: "cursor")
    }

    @Test(
        "A preference to wait that is none is answered at once",
        arguments: [
            "wait=-5", "wait=soon", "wait", "=", ",,,", "wait=", "wait=99999999999999999999",
        ])
    func wrongWait(_ preference: String) async throws {
        let target = try await Target.shared()
        try await target.register("waiting")
        let poll = try await target.send(
            "GET", "clients/waiting/reloads", token: target.clientToken("waiting"),
            headers: [("Prefer", preference)])
        #expect(poll.status == 200)
    }

    @Test(
        "An acknowledgement with a cursor of nobody is 422",
        arguments: [
            "", "garbage", 5, nil, ["x"], "AAAAARGpjN8AAAAAAAAACNcpu2QrFJ89", "a\u{0}b",
        ] as [JSONValue])
    func wrongAcknowledgement(_ cursor: JSONValue) async throws {
        let target = try await Target.shared()
        try await target.register("ack")
        let answer = try await target.send(
            "POST", "clients/ack/acks", token: target.clientToken("ack"), ["cursor": cursor])
        expectRefusal(answer, 422, "invalid", place: "cursor")
    }

    @Test(
        "An acknowledgement with members of wrong types is 422, each named",
        arguments: [
            ("rebuilt", ["rebuilt": [:]]), ("rebuilt[0]", ["rebuilt": [1]]),
            ("rebuilt[0].parameters", ["rebuilt": [["kind": "k", "parameters": 5]]]),
            ("rebuilt[0].ms", ["rebuilt": [["kind": "k", "ms": "soon"]]]),
            ("rebuilt[0].ms", ["rebuilt": [["kind": "k", "ms": -1]]]),
            ("rebuilt[0].unchanged", ["rebuilt": [["kind": "k", "unchanged": "yes"]]]),
            ("failed", ["failed": "s3cr3t"]),
            ("failed[0].reason", ["failed": [["kind": "k", "reason": 5]]]),
            ("recommendations", ["recommendations": "k"]),
            ("recommendations[0]", ["recommendations": [5]]),
            ("recommendations[0]", ["recommendations": ["k\u{0}"]]),
        ] as [(String, JSONValue)])
    func wrongTypes(_ place: String, _ members: JSONValue) async throws {
        let target = try await Target.shared()
        let cursor = try await target.register("acktypes")["cursor"] ?? nil
        var body = members.objectValue ?? JSONObject()
        body["cursor"] = cursor
        let answer = try await target.send(
            "POST", "clients/acktypes/acks", token: target.clientToken("acktypes"), .object(body))
        expectRefusal(answer, 422, "invalid", place: place)
    }

    @Test("A stream ends with its token, and no notification comes after")
    func expiry() async throws {
        let target = try await Target.shared()
        try await target.register("expiry")
        // Again where this machine was too slow to open it within the life of the token.
        try await eventually("a stream opens and ends") {
            // Clocks may differ by 60 s.
            let end = JSONValue.integer(Issuer.now - 58)
            let token = try target.issuer.token(scope: "client", sub: "expiry", ["exp": end])
            let stream = target.process.stream(app: Target.app, client: "expiry", token: token)
            return try await elsewhere { stream.head()?.status == 200 && stream.waitForEnd() }
        }
    }

    @Test("What a reader sends into its stream is ignored, and makes no second request")
    func talkingReader() async throws {
        let target = try await Target.shared()
        try await target.register("talker")
        let token = try target.clientToken("talker")
        let received = try await elsewhere { () -> [UInt8] in
            let socket = try RawClient(port: target.port, .init("http/1.1")).handshake()
            socket.send(
                """
                GET /v1/apps/\(Target.app)/clients/talker/reloads HTTP/1.1\r
                Host: localhost\r
                Authorization: Bearer \(token)\r
                Accept: text/event-stream\r
                Content-Length: 5\r
                \r
                12345
                """)
            for _ in 0..<100 {
                socket.send("DELETE /v1/apps/\(Target.app)/clients/talker HTTP/1.1\r\nHost: x\r\n")
                socket.send("Authorization: Bearer \(token)\r\n\r\n")
            }
            return socket.readUntil { bytes in
                String(decoding: bytes, as: UTF8.self).contains("event: reload")
            }.bytes
        }
        let text = String(decoding: received, as: UTF8.self)
        #expect(text.components(separatedBy: "HTTP/1.1").count == 2, "one answer")
        let after = try await target.send("GET", "clients/talker", token: target.backend)
        #expect(after.status == 200)
    }
}
