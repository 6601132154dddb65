import APNsSimulator
import Testing

/// One test for each rule about a request's form.
@Suite struct PushRulesTests {
    private func answer(_ change: (inout PushRequest) -> Void) throws -> PushAnswer? {
        var fixture = try JudgeFixture { $0.rules.apps = ["com.mygame"] }
        var request = try fixture.request()
        change(&request)
        let answer = fixture.answer(to: request)
        if answer != .taken, let reason = answer?.documentedReason {
            #expect(fixture.apns.record.violations == [.badRequest(reason): 1])
        }
        return answer
    }

    @Test func aPushWithoutFaultsIsTaken() throws {
        #expect(try answer { _ in } == .taken)
    }

    @Test func aPushMayLeaveOutWhatHasADefault() throws {
        let answer = try answer {
            $0.id = nil
            $0.priority = nil
            $0.expiration = nil
        }
        #expect(answer == .taken)
    }

    @Test func onlyPOSTIsTaken() throws {
        #expect(try answer { $0.method = "GET" } == .refused(.methodNotAllowed))
    }

    @Test(arguments: ["/", "/3/device", "/2/device/0a", "/3/device/0a/0b", "/3/Device/0a"])
    func anotherPathIsRefused(path: String) throws {
        #expect(try answer { $0.path = path } == .refused(.badPath))
    }

    @Test func aPathWithoutDeviceTokenIsRefused() throws {
        #expect(try answer { $0.path = "/3/device/" } == .refused(.missingDeviceToken))
    }

    @Test(arguments: ["0", "0g", "0a0b0", "%30a"])
    func aDeviceTokenThatIsNotHexadecimalIsRefused(token: String) throws {
        #expect(try answer { $0.path = "/3/device/" + token } == .refused(.badDeviceToken))
    }

    @Test func aRepeatedFieldIsRefused() throws {
        let answer = try answer { $0.take("apns-topic", "com.mygame.push-type.widgets") }
        #expect(answer == .refused(.duplicateHeaders))
    }

    @Test(arguments: [
        "", "1", "00000000-0000-4000-8000-00000000000G", "00000000-0000-4000-8000-00000000000A",
        "00000000000040008000000000000001", "00000000-0000-4000-8000-0000000000011",
        "00000000-0000-4000-80000-00000000001",
    ])
    func anIDThatIsNoLowercaseUUIDIsRefused(id: String) throws {
        #expect(try answer { $0.id = id } == .refused(.badMessageID))
    }

    @Test(arguments: ["", "-1", "1.5", "soon", "99999999999999999999"])
    func anExpirationThatIsNoNumberIsRefused(expiration: String) throws {
        #expect(try answer { $0.expiration = expiration } == .refused(.badExpirationDate))
    }

    @Test(arguments: ["0", "2", "high", "", "11"])
    func anotherPriorityIsRefused(priority: String) throws {
        #expect(try answer { $0.priority = priority } == .refused(.badPriority))
    }

    @Test(arguments: ["1", "5", "10"]) func thePrioritiesAreTaken(priority: String) throws {
        #expect(try answer { $0.priority = priority } == .taken)
    }

    @Test(arguments: [("10", false), ("1", false), (nil as String?, false), ("5", true)])
    func aBackgroundPushHasPriority5(priority: String?, isTaken: Bool) throws {
        let answer = try answer {
            $0.pushType = "background"
            $0.topic = "com.mygame"
            $0.priority = priority
        }
        #expect(answer == (isTaken ? .taken : .refused(.badPriority)))
    }

    @Test func aCollapseIDHasAtMost64Bytes() throws {
        let most = String(repeating: "é", count: 32)
        #expect(try answer { $0.collapseID = most } == .taken)
        #expect(try answer { $0.collapseID = most + "a" } == .refused(.badCollapseID))
    }

    @Test func anUnknownPushTypeIsRefused() throws {
        #expect(try answer { $0.pushType = "widget" } == .refused(.invalidPushType))
    }

    @Test func aTopicIsNeeded() throws {
        #expect(try answer { $0.topic = nil } == .refused(.missingTopic))
    }

    @Test(arguments: [
        "", "com.mygame", ".push-type.widgets", "com.mygame.push-type.controls",
        "com.my game.push-type.widgets",
    ])
    func aTopicThatIsNotOfThePushTypeIsRefused(topic: String) throws {
        #expect(try answer { $0.topic = topic } == .refused(.badTopic))
    }

    @Test func theTopicOfAnotherAppIsDisallowed() throws {
        let answer = try answer { $0.topic = "com.other.push-type.widgets" }
        #expect(answer == .refused(.topicDisallowed))
    }

    @Test(arguments: [
        ("widgets", ".push-type.widgets"), ("controls", ".push-type.controls"), ("alert", ""),
    ])
    func eachPushTypeHasItsTopic(type: String, suffix: String) throws {
        let answer = try answer {
            $0.pushType = type
            $0.topic = "com.mygame" + suffix
        }
        #expect(answer == .taken)
    }

    @Test func aPayloadIsNeeded() throws {
        let answer = try answer {
            $0.body = []
            $0.bodyBytes = 0
        }
        #expect(answer == .refused(.payloadEmpty))
    }

    @Test(arguments: [(4_096, true), (4_097, false)])
    func aPayloadHasAtMost4096Bytes(bytes: Int, isTaken: Bool) throws {
        let answer = try answer { $0.bodyBytes = bytes }
        #expect(answer == (isTaken ? .taken : .refused(.payloadTooLarge)))
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
