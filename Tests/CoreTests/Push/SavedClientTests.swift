import Testing
import WidgetModel

@testable import GatewayCore

/// The push state of a client as the store has it, which older versions wrote and newer ones read.
@Suite struct SavedClientTests {
    private static let address =
        #"{"id":-1,"delivered":7,"spokeSince":4,"givenUp":3,"failures":2,"repeats":1,"#
        + #""awaits":true,"usable":false,"wait":9,"repeatWait":11}"#
    private static let lane =
        #"{"sort":"timelines","savedAt":1,"latest":8,"confirmed":6,"told":7,"urgency":3,"#
        + #""answers":true,"held":4,"grace":5,"addresses":["# + address + "]}"
    private static let webhook =
        #"{"savedAt":1,"message":2,"content":-1,"delivered":true,"failures":3,"failingFor":4,"#
        + #""disabled":1}"#
    private static let budget =
        #"{"savedAt":1,"widgets":2,"controls":3,"background":4,"pushed":[{"kind":-1,"age":5}]}"#
    private static let client =
        #"{"lanes":[\#(lane)],"addresses":[{"id":1,"environment":0,"standing":1},"#
        + #"{"id":5,"webhook":\#(webhook)}],"budget":\#(budget)}"#

    private static func read(_ text: String) throws -> PushScheduler.SavedClient {
        try PushScheduler.SavedClient(text.utf8, budget: .init(), now: 0, wall: 1)
    }

    @Test func `each part is read back and written as in older versions`() throws {
        let client = try Self.read(Self.client)
        let lane = try #require(client.lanes[.timelines])
        #expect(lane.saved(.timelines, now: 0, wall: 1).text == Self.lane)
        #expect(client.addresses[5]?.webhook?.saved(now: 0, wall: 1).text == Self.webhook)
        let environment = APNsEnvironmentChoice(current: .production, standing: .swapped)
        #expect(client.addresses[1]?.environment == environment)
        #expect(client.addresses[1]?.webhook == nil && client.addresses[5]?.environment == nil)
        let budget = try #require(client.budget)
        #expect(budget.saved(now: 0, wall: 1).text == Self.budget)
    }

    @Test func `a client is written as in older versions`() throws {
        var small = try SmallPushScheduler()
        let hook = DeliveryAddress.webhook(url: "https://hook.example")
        small.scheduler.registered(
            device(delivery: [apns(), hook]), app: "app", now: small.now)
        let key = ClientKey(app: "app", client: "device")
        try small.change("1")
        let pushes = small.orders()
        small.save()
        let text = String(decoding: try #require(small.saved[key]), as: UTF8.self)
        #expect(pushes.count == 1 && text.hasPrefix(#"{"lanes":[{"sort":"timelines","#))
        let client = try #require(small.scheduler.clients[key])
        let addresses = client.addresses.sorted { $0.key < $1.key }.map { id, address in
            let webhook = address.webhook.map {
                #","webhook":"# + $0.saved(now: small.now, wall: small.now).text
            }
            return #"{"id":\#(Int64(bitPattern: id))"#
                + (webhook ?? #","environment":0,"standing":0"#) + "}"
        }
        let budget = try #require(client.budget?.saved(now: small.now, wall: small.now).text)
        let end =
            #","addresses":["# + addresses.joined(separator: ",") + #"],"budget":"# + budget + "}"
        #expect(text.hasSuffix(end))
    }

    @Test(arguments: ["control", "activity", "start"])
    func `names of categories are read back as they were`(word: String) throws {
        for name in ["a b", "\u{301}a b", ""] {
            let category: PushCategory =
                switch word {
                case "control": .control(id: name)
                case "activity": .activity(id: name)
                default: .start(type: name)
                }
            #expect(category.text == word + " " + name)
            #expect(PushCategory(text: category.text) == category)
        }
    }

    @Test func `members that only Live Activities have are read back`() throws {
        var attempts = DeliveryAttempts()
        attempts.register([1])
        attempts.changed(at: 5, urgency: .normal, now: 0)
        attempts.began(1, at: 5, since: 0)
        attempts.delivered(1, now: 0, awaits: false, ends: true)
        _ = attempts.stamped(wall: 9)
        attempts.startedSince = .max
        let saved = attempts.saved(.activity(id: "a"), now: 0, wall: 1)
        let read = try DeliveryAttempts(saved, now: 0, wall: 1)
        #expect(read.addresses.map(\.hasEnded) == [true] && read.startedSince == .max)
        #expect(read.stamp == 9 + DeliveryAttempts.stampsUnsaved)
        var used = try #require(try Self.read(Self.client).budget)
        _ = used.ask(.liveactivity, stale: [], urgency: .high, now: 0)
        let budget = used.saved(now: 0, wall: 1)
        #expect(budget.objectValue?["activities"] == .integer(9 * 86_400_000))
        let restored = try PushBudget(budget, .init(), now: 0, wall: 1)
        #expect(restored.saved(now: 0, wall: 1) == budget)
    }

    @Test func `what an older version stored of a webhook is that of its timelines`() throws {
        let old =
            #"{"lanes":[{"sort":"everything","savedAt":1,"latest":8,"confirmed":6,"urgency":3,"#
            + #""answers":true,"held":4,"grace":5,"addresses":[]}],"addresses":[]}"#
        let lanes = try Self.read(old).lanes
        #expect(lanes.count == 1 && lanes[.timelines]?.latest == 8 && lanes[.timelines]?.told == 0)
        #expect(lanes[.timelines]?.stamp == 0)
    }

    /// An address that does not say since when it spoke states everything again.
    @Test func `what an older version stored of an address is read`() throws {
        let client = try Self.read(Self.client.replacing(#""spokeSince":4,"#, with: ""))
        let address = try #require(client.lanes[.timelines]?.addresses.first)
        #expect(address.spokeSince == DeliveryAttempts.Address(id: .max).spokeSince)
        #expect(address.delivered == 7 && address.givenUp == 3)
    }

    /// The time that reading takes is not taken from the grace period.
    @Test func `the grace period begins when the client is restored`() throws {
        var attempts = try #require(try Self.read(Self.client).lanes[.timelines])
        #expect(attempts.graceUntil == 5)
        attempts.restartGrace(now: 1_000)
        #expect(attempts.graceUntil == 1_005 && attempts.pendingSince == 1_000)
    }

    @Test(arguments: [
        (#""widgets":2"#, #""widgets":"2""#), (#""latest":8,"#, ""), (#"{"id":-1,"#, "{"),
        (#","standing":1"#, ""), (#""standing":1"#, #""standing":9"#), (#""content":-1,"#, ""),
        (#""age":5"#, #""ages":5"#), (#"{"sort":"timelines","#, "{"),
        (#""addresses":[{"id":1,"#, #""addressed":[{"id":1,"#),
    ])
    func `what is damaged is not read`(part: String, damaged: String) {
        let text = Self.client.replacing(part, with: damaged)
        #expect(text != Self.client)
        #expect(throws: UnreadableState.self) { _ = try Self.read(text) }
    }
}
