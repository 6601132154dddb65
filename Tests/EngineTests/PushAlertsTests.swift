import GatewayCore
import Testing

@testable import GatewayEngine

@Suite struct PushAlertsTests {
    @Test func `an app's events are listed from the newest on, what happens again once`() {
        let events = PushAlerts()
        events.note(.topicRefused, app: "a", channel: "widgets", reason: "TopicDisallowed", at: 1)
        events.note(.webhookGone, app: "a", client: "c", at: 2)
        events.note(.topicRefused, app: "b", channel: "widgets", reason: "TopicDisallowed", at: 3)
        let again = events.note(
            .topicRefused, app: "a", channel: "widgets", reason: "TopicDisallowed", at: 4)
        events.note(.webhookGone, app: "a", client: "d", at: 5)
        #expect(again.times == 2)
        let listed = events.events(of: "a")
        #expect(listed.map(\.at) == [5, 4, 2])
        #expect(listed.map(\.times) == [1, 2, 1])
        #expect(listed.map(\.client) == ["d", nil, "c"])
        #expect(listed[1].text.contains("widgets pushes: TopicDisallowed."))
        #expect(events.events(of: "b").map(\.at) == [3])
        #expect(events.events(of: "c").isEmpty)
    }

    @Test func `a token of another topic is reported with the topic used and the one that fits`() {
        let events = PushAlerts()
        func note(_ used: String, registered: String?) -> String {
            events.note(
                .pairingRefused, app: "a", channel: "widgets", reason: "DeviceTokenNotForTopic",
                topics: TopicMismatch(used: used, registered: registered), at: 1
            ).text
        }
        let used = "com.game.push-type.widgets"
        let other = note(used, registered: "com.game.beta")
        #expect(other.contains("DeviceTokenNotForTopic. The topic was \(used). "))
        #expect(other.contains("com.game.beta.push-type.widgets fits: set `topic` of the app"))
        // A client may have stated the whole topic.
        #expect(note(used, registered: "com.game.beta.push-type.widgets") == other)
        let unstated = note(used, registered: nil)
        #expect(unstated.contains("which is not com.game: set `topic`"))
        let same = note(used, registered: "com.game")
        #expect(same.contains("another app or push type"))
        let background = note("com.game", registered: "com.beta")
        #expect(background.contains("so com.beta fits"))
        #expect(
            events.pairingProblem(app: "a", channel: "widgets", registeredTopic: nil) == unstated)
        #expect(
            events.pairingProblem(app: "a", channel: "widgets", registeredTopic: "com.game") == same
        )
        #expect(events.pairingProblem(app: "a", channel: "controls", registeredTopic: nil) == nil)
        #expect(events.pairingProblem(app: "b", channel: "widgets", registeredTopic: nil) == nil)
    }

    @Test func `services that clients choose are named, and displace no other events`() {
        let events = PushAlerts()
        events.note(.credentialRefused, app: "a", channel: "fcm", at: 0)
        for index in 0..<1_200 {
            events.note(
                .subscriptionRefused, app: "a", channel: "webpush", reason: "403",
                host: "h\(index).example", at: Int64(index))
        }
        let listed = events.events(of: "a")
        #expect(listed.count == 101 && listed.last?.kind == .credentialRefused)
        #expect(listed[0].text.contains("h1199.example") && listed[0].text.contains("403"))
    }

    @Test func `no more of an app's events are kept than allowed, and a peer's word is cut`() {
        let events = PushAlerts()
        for index in 0..<1_200 {
            events.note(.webhookGone, app: "a", client: "c\(index)", at: Int64(index))
        }
        events.note(.pairingRefused, app: "b", reason: String(repeating: "x", count: 9_999), at: 1)
        #expect(events.events(of: "a").map(\.at) == Array(200..<1_200).reversed())
        #expect(events.events(of: "b").first.map { $0.text.count < 300 } == true)
    }
}
