import APNsSimulator
import Testing

/// The rules about a request's form.
@Suite struct PushRulesTests {
    private typealias Change = (inout PushRequest) -> Void
    private typealias Setter = (inout PushRequest, String?) -> Void

    private func answer(_ change: Change) throws -> PushAnswer? {
        var fixture = try JudgeFixture { $0.rules.apps = ["com.mygame"] }
        var request = try fixture.request()
        change(&request)
        let answer = fixture.answer(to: request)
        if answer != .taken, let reason = answer?.documentedReason {
            #expect(fixture.apns.record.violations == [.badRequest(reason): 1])
        }
        return answer
    }

    private static let longestID = String(repeating: "é", count: 32)

    @Test func whatIsAllowedIsTaken() throws {
        var changes: [Change] = [
            { _ in },
            { ($0.id, $0.priority, $0.expiration) = (nil, nil, nil) },
            { ($0.pushType, $0.topic, $0.priority) = ("background", "com.mygame", "5") },
            { $0.collapseID = Self.longestID },
            { ($0.pushType, $0.topic) = ("controls", "com.mygame.push-type.controls") },
            { ($0.pushType, $0.topic) = ("alert", "com.mygame") },
            { ($0.pushType, $0.topic) = ("liveactivity", "com.mygame.push-type.liveactivity") },
            { $0.bodyBytes = 4_096 },
        ]
        for priority in ["1", "5", "10"] { changes.append { $0.priority = priority } }
        for (number, change) in changes.enumerated() {
            #expect(try answer(change) == .taken, "\(number)")
        }
    }

    @Test func whatIsNotIsRefusedWithItsReason() throws {
        var cases: [(APNsReason, Change)] = [
            (.methodNotAllowed, { $0.method = "GET" }),
            (.missingDeviceToken, { $0.path = "/3/device/" }),
            (.duplicateHeaders, { $0.take("apns-topic", "com.mygame.push-type.widgets") }),
            (.badCollapseID, { $0.collapseID = Self.longestID + "a" }),
            (.invalidPushType, { $0.pushType = "widget" }),
            (.missingTopic, { $0.topic = nil }),
            (.topicDisallowed, { $0.topic = "com.other.push-type.widgets" }),
            (.payloadEmpty, { ($0.body, $0.bodyBytes) = ([], 0) }),
            (.payloadTooLarge, { $0.bodyBytes = 4_097 }),
            (.badTopic, { $0.pushType = "liveactivity" }),
            (.badPriority, { ($0.pushType, $0.priority) = ("liveactivity", "1") }),
        ]
        func add(_ reason: APNsReason, _ values: [String?], _ change: @escaping Setter) {
            for value in values { cases.append((reason, { change(&$0, value) })) }
        }
        add(.badPath, ["/", "/3/device", "/2/device/0a", "/3/device/0a/0b", "/3/Device/0a"]) {
            $0.path = $1 ?? ""
        }
        add(.badDeviceToken, ["0", "0g", "0a0b0", "%30a"]) { $0.path = "/3/device/" + ($1 ?? "") }
        add(
            .badMessageID,
            [
                "", "1", "00000000-0000-4000-8000-00000000000G",
                "00000000-0000-4000-8000-00000000000A", "00000000000040008000000000000001",
                "00000000-0000-4000-8000-0000000000011", "00000000-0000-4000-80000-00000000001",
            ]
        ) { $0.id = $1 }
        add(.badExpirationDate, ["", "-1", "1.5", "soon", "99999999999999999999"]) {
            $0.expiration = $1
        }
        add(.badPriority, ["0", "2", "high", "", "11"]) { $0.priority = $1 }
        add(.badPriority, ["10", "1", nil]) {
            ($0.pushType, $0.topic, $0.priority) = ("background", "com.mygame", $1)
        }
        add(
            .badTopic,
            [
                "", "com.mygame", ".push-type.widgets", "com.mygame.push-type.controls",
                "com.my game.push-type.widgets",
            ]
        ) { $0.topic = $1 }
        for (number, (reason, change)) in cases.enumerated() {
            #expect(try answer(change) == .refused(reason), "\(number)")
        }
    }

    @Test func onlySoMuchOfABodyIsKept() {
        var request = PushRequest()
        request.take(body: [1, 2, 3], bytesMax: 4)
        request.take(body: [4, 5, 6], bytesMax: 4)
        #expect(request.body == [1, 2, 3, 4] && request.bodyBytes == 6)
    }

    @Test(arguments: [
        "00000000-0000-4000-8000-000000000001", "01234567-89ab-cdef-0123-456789abcdef",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ])
    func anIDIsWrittenAsItWasRead(id: String) {
        #expect(PushID(id)?.text == id)
    }
}
