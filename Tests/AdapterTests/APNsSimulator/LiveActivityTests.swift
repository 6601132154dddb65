import APNsSimulator
import Testing
import WidgetModel

/// The rules of pushes for Live Activities, and of their channels.
@Suite struct LiveActivityTests {
    @Test func theFormOfABroadcast() throws {
        let cases: [(APNsReason?, (inout PushRequest) -> Void)] = [
            (nil, { $0.bodyBytes = 5_120 }), (.payloadTooLarge, { $0.bodyBytes = 5_121 }),
            (.methodNotAllowed, { $0.method = "GET" }), (.badMessageID, { $0.requestID = "1" }),
            (.badPath, { $0.path += "/0" }), (.invalidPushType, { $0.pushType = "alert" }),
            (.missingPushType, { $0.pushType = nil }), (.badPriority, { $0.priority = "1" }),
            (.badPriority, { $0.priority = nil }), (.badExpirationDate, { $0.expiration = nil }),
            (.badExpirationDate, { $0.expiration = "1800000060" }),
            (.topicDisallowed, { $0.path += ".push-type.liveactivity" }),
            (.missingChannelID, { $0.channelID = nil }), (.badChannelID, { $0.channelID = "A_==" }),
            (.channelNotRegistered, { $0.channelID = "AAAA" }),
        ]
        for (number, (reason, change)) in cases.enumerated() {
            var fixture = try JudgeFixture()
            let channel = fixture.apns.createChannel(ofApp: "com.mygame", .noMessages) ?? ""
            var push = try fixture.broadcast(to: channel)
            change(&push)
            let answer = reason.map { PushAnswer.refused($0) } ?? .taken
            #expect(fixture.answer(to: push) == answer, "\(number)")
        }
    }

    @Test func theContentOfAPush() throws {
        // A key with its value; `nil` removes it.
        typealias Content = (event: String, key: String, value: JSONValue?)
        let valid: [Content] = [
            ("start", "input-push-token", 1), ("start", "input-push-channel", "AAAA"),
            ("update", "alert", ["title": "Goal"]), ("update", "relevance-score", 75),
            ("end", "stale-date", 1_800_000_060), ("end", "dismissal-date", 0),
        ]
        let broken: [Content] = [
            ("begin", "event", "begin"), ("update", "timestamp", nil),
            ("update", "timestamp", 1_800_000_000_000), ("update", "content-state", nil),
            ("update", "stale-date", "soon"), ("end", "dismissal-date", "now"),
            ("update", "relevance-score", "high"), ("start", "alert", nil),
            ("start", "attributes", nil), ("start", "attributes-type", ""),
            ("end", "attributes", ["home": "b"]), ("end", "aps", true),
        ]
        for (number, content) in (valid + broken).enumerated() {
            var fixture = try JudgeFixture()
            let push = try fixture.activity(content.event) { $0[content.key] = content.value }
            // APNs passes on any content.
            #expect(fixture.answer(to: push) == .taken)
            let violation = PushViolation.badContent(key: content.key)
            let isBroken = number >= valid.count
            #expect(fixture.apns.record.violations == (isBroken ? [violation: 1] : [:]))
        }
    }

    @Test func timestampsAscend() throws {
        var fixture = try JudgeFixture()
        // The same content again, and a lower time than in a push that was refused, are no fault.
        for _ in 0..<2 { _ = try fixture.answer(to: fixture.activity(at: 100)) }
        fixture.apns.script(JudgeFixture.token, [.refused(.tooManyRequests), .take])
        for time: Int64 in [200, 150] { _ = try fixture.answer(to: fixture.activity(at: time)) }
        #expect(fixture.apns.record.violations.isEmpty)
        _ = try fixture.answer(to: fixture.activity(at: 149))
        _ = try fixture.answer(to: fixture.activity(at: 150) { $0["content-state"] = ["goals": 2] })
        #expect(fixture.apns.record.violations == [.outOfOrder: 2])
        let seen = fixture.apns.record.devices[JudgeFixture.token]?.activities ?? []
        #expect(seen.map(\.timestamp) == [100, 100, 150, 149, 150])
        #expect(seen.last?.event == .update && seen.last?.contentState == ["goals": 2])
    }

    @Test func nothingFollowsTheEnd() throws {
        var fixture = try JudgeFixture()
        try fixture.warmUp()
        // Until an end is answered, it may be sent again.
        fixture.apns.script(JudgeFixture.token, [.silence(isTaken: true), .take])
        for time: Int64 in [100, 101] {
            _ = try fixture.answer(to: fixture.activity("end", at: time))
        }
        #expect(fixture.apns.record.violations.isEmpty)
        _ = try fixture.answer(to: fixture.activity(at: 102))
        #expect(fixture.apns.record.violations == [.afterEnd: 1])
    }

    @Test func startsHaveTokensOfTheirOwn() throws {
        var fixture = try JudgeFixture()
        // Starts are of different activities, and need no order.
        _ = try fixture.answer(to: fixture.activity("start", at: 101, to: "0a"))
        _ = try fixture.answer(to: fixture.activity("start", at: 100, to: "0a"))
        _ = try fixture.answer(to: fixture.activity(to: "0b"))
        #expect(fixture.apns.record.violations.isEmpty)
        _ = try fixture.answer(to: fixture.activity(at: 102, to: "0a"))
        _ = try fixture.answer(to: fixture.activity("start", to: "0b"))
        #expect(fixture.apns.record.violations == [.wrongActivityToken: 2])
    }

    @Test func aChannelIsJudgedLikeAToken() throws {
        var fixture = try JudgeFixture()
        let channel = fixture.apns.createChannel(ofApp: "com.mygame", .mostRecentMessage) ?? ""
        fixture.apns.script(channel, [.refused(.tooManyRequests), .take])
        #expect(try fixture.answer(to: fixture.broadcast(to: channel))?.status == 429)
        // Another activity may use the channel after the end.
        for (event, time) in [("end", 100), ("update", 101), ("update", 99), ("start", 102)] {
            _ = try fixture.answer(to: fixture.broadcast(event, at: Int64(time), to: channel))
        }
        let violations = fixture.apns.record.violations
        #expect(violations[.outOfOrder] == 1 && violations[.afterEnd] == nil)
        #expect(violations[.badContent(key: "event")] == 1)
        let seen = fixture.apns.record.devices[channel]?.activities ?? []
        #expect(seen.map(\.timestamp) == [100, 101, 99, 102])
    }

    @Test func channelsAreManaged() throws {
        var fixture = try JudgeFixture {
            $0.channelsMax = 1
            $0.rules.broadcastApps = ["com.a"]
        }
        func answer(
            _ method: String, _ path: String = "com.a/channels", of channel: String? = nil,
            body: String = ""
        ) -> PushAnswer? {
            var request = PushRequest()
            (request.method, request.path) = (method, "/1/apps/" + path)
            (request.authorization, request.channelID) = (fixture.authorization, channel)
            request.take(body: Array(body.utf8), bytesMax: 5_120)
            return fixture.answer(to: request)
        }
        let body = #"{"message-storage-policy":0,"push-type":"LiveActivity"}"#
        let channel = try #require(answer("POST", body: body)?.channelID)
        let answers: [PushAnswer?] = [
            answer("POST"), answer("POST", body: "{"), answer("POST", body: "{}"),
            answer("POST", body: #"{"push-type":"liveactivity"}"#),
            answer("POST", body: #"{"push-type":"LiveActivity"}"#),
            answer("POST", "com.b/channels", body: body), answer("POST", body: body),
            answer("GET"), answer("PUT"), answer("DELETE", "com.a/all-channels"),
            answer("GET", of: channel), answer("GET", "com.a/all-channels"),
            answer("DELETE", of: channel), answer("DELETE", of: channel),
        ]
        let expected: [String?] = [
            "PayloadEmpty", "BadRequestPayload", "MissingPushType", "InvalidPushType",
            "BadRequestParams", "FeatureNotEnabled", "CannotCreateChannelConfig",
            "MissingChannelId", "MethodNotAllowed", "MethodNotAllowed", body,
            #"{"channels":["\#(channel)"]}"#, "", "ChannelNotRegistered",
        ]
        #expect(answers.map { $0?.reason ?? $0?.body } == expected)
        #expect(fixture.apns.record.taken == 0 && fixture.apns.record.devices.isEmpty)
    }
}

extension JudgeFixture {
    /// Returns a valid push for a Live Activity, with a change to `aps`.
    fileprivate mutating func activity(
        _ event: String = "update", at timestamp: Int64 = 1_800_000_000,
        to token: String = Self.token, _ change: (inout JSONObject) -> Void = { _ in }
    ) throws -> PushRequest {
        var aps: JSONObject = ["event": .string(event), "content-state": ["goals": 1]]
        aps["timestamp"] = .integer(timestamp)
        if event == "start" {
            aps["attributes-type"] = "Match"
            aps["attributes"] = ["home": "a"]
            aps["alert"] = ["title": "Kick-off", "body": "a:b"]
        }
        change(&aps)
        var request = try self.request(to: token)
        (request.pushType, request.topic) = ("liveactivity", "com.mygame.push-type.liveactivity")
        (request.body, request.bodyBytes) = ([], 0)
        request.take(body: JSONValue.object(["aps": .object(aps)]).serialized, bytesMax: 5_120)
        return request
    }

    /// Returns a valid push to a channel.
    fileprivate mutating func broadcast(
        _ event: String = "update", at timestamp: Int64 = 1_800_000_000, to channel: String
    ) throws -> PushRequest {
        var push = try activity(event, at: timestamp)
        push.path = "/4/broadcasts/apps/com.mygame"
        (push.requestID, push.id, push.topic) = (push.id, nil, nil)
        (push.channelID, push.priority, push.expiration) = (channel, "10", "0")
        return push
    }
}
