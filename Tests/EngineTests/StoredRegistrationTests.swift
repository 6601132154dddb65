import Foundation
import GatewayCore
import GatewayOperations
import Testing
import WidgetModel

@Suite struct StoredRegistrationTests {
    @Test func `attributes are read back by who answers for them`() throws {
        var stored = StoredRegistration(registration: ClientRegistration(platform: "iOS"))
        stored.attributes = ClientAttributes(
            own: ["theme": ["dark"]], token: ["account": ["42"]], backend: ["team": ["7", "8"]],
            unattributed: ["house": ["9"]])
        let read = try StoredRegistration(stored.payload, limits: .none)
        #expect(read.attributes == stored.attributes)
        #expect(read.payload == stored.payload)
    }

    @Test func `a token that goes leaves its activity, and takes the start of its type along`()
        throws
    {
        func token(_ text: String) -> DeliveryAddress {
            .apns(.init(pushType: "liveactivity", token: text))
        }
        let (one, two) = (token("aa"), token("bb"))
        var stored = StoredRegistration(
            registration: ClientRegistration(
                platform: "iOS",
                activities: ["aa", "bb"].map { .init(type: "A", id: $0, delivery: token($0)) },
                activityStarts: [.init(type: "A", delivery: token("cc"))]))
        stored.remove(one)
        stored.remove(token("cc"))
        #expect(stored.registration.activities.map(\.id) == ["aa", "bb"])
        #expect(stored.registration.activities.map(\.delivery) == [nil, two])
        #expect(stored.registration.activityStarts.isEmpty)
    }

    @Test func `a store that did not tell tokens from backends keeps what it has`() throws {
        let old = """
            {"registration":{"platform":"iOS","attributes":{"theme":"dark"}},\
            "own":{"theme":"dark"},"vouched":{"account":"42"},"confirmed":{},"since":3}
            """
        let read = try StoredRegistration(Data(old.utf8), limits: .none)
        #expect(
            read.attributes
                == ClientAttributes(own: ["theme": ["dark"]], unattributed: ["account": ["42"]]))
        #expect(read.since == 3)
    }
}
