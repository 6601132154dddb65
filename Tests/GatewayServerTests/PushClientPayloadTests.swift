import GatewayCore
import GatewayPush
import GatewayRecords
import Testing
import WidgetModel

@Suite struct PushClientPayloadTests {
    @Test func `what is kept of a client is read back as it was`() throws {
        let address = DeliveryAttempts.SavedAddress(
            id: .max, delivered: 7, spokeSince: 4, givenUp: 3, failures: 2, repeats: 1,
            awaitsSign: true, isUsable: false, wait: 9, repeatWait: 11)
        let attempts = DeliveryAttempts.Saved(
            savedAt: 1, latest: 8, confirmed: 6, told: 7, urgency: 3, isKnownToAnswer: true,
            held: 4, grace: 5, addresses: [address])
        var ended = attempts
        ended.addresses[0].hasEnded = true
        ended.stamp = 9
        ended.startedSince = .max
        let saved = PushScheduler.SavedClient(
            lanes: [
                .timelines: attempts, .recommendations: attempts, .control(id: "a b"): attempts,
                .activity(id: "a b"): ended, .activity(id: "\u{301}a b"): ended,
                .start(type: "c d"): attempts,
            ],
            addresses: [
                .init(
                    id: 1 << 63,
                    environment: APNsEnvironmentChoice(current: .sandbox, standing: .proven),
                    webhook: nil),
                .init(
                    id: 5, environment: nil,
                    webhook: .init(
                        savedAt: 1, message: 2, content: .max, isDelivered: true, failures: 3,
                        failingFor: 4, disabled: 1)),
            ],
            budget: .init(
                savedAt: 1,
                credits: [
                    .widgets: 2, .controls: 3, .background: 4, .activities: 5,
                    .quietActivities: 6,
                ],
                pushed: [.init(kind: .max, age: 5)]))
        #expect(try PushClientPayload.read(PushClientPayload.data(saved)) == saved)
        #expect(throws: LogPayload.Unreadable.self) {
            _ = try PushClientPayload.read(.init(#"{"lanes":[{}],"addresses":[]}"#.utf8))
        }
    }

    @Test func `what is kept of a client without activities is as in older versions`() throws {
        let address =
            #"{"id":1,"delivered":7,"spokeSince":4,"givenUp":3,"failures":2,"repeats":1,"#
            + #""awaits":true,"usable":false,"wait":9,"repeatWait":11}"#
        let lane =
            #"{"sort":"timelines","savedAt":1,"latest":8,"confirmed":6,"told":7,"urgency":3,"#
            + #""answers":true,"held":4,"grace":5,"addresses":["# + address + "]}"
        let budget =
            #"{"savedAt":1,"widgets":2,"controls":3,"background":4,"#
            + #""pushed":[{"kind":9,"age":5}]}"#
        let old =
            #"{"lanes":["# + lane + #"],"addresses":[{"id":1,"environment":0,"standing":1}],"#
            + #""budget":"# + budget + "}"
        let read = try PushClientPayload.read(.init(old.utf8))
        #expect(String(decoding: PushClientPayload.data(read), as: UTF8.self) == old)
        let saved = try #require(read.budget)
        var used = PushBudget(saved, .init(), now: 0, wall: 1)
        _ = used.ask(.widgets, stale: [], urgency: .high, now: 0)
        #expect(
            Set(used.saved(now: 0, wall: 1).credits.keys) == [.widgets, .controls, .background])
        _ = used.ask(.liveactivity, stale: [], urgency: .high, now: 0)
        #expect(used.saved(now: 0, wall: 1).credits[.activities] == 9 * 86_400_000 as Int64)
        #expect(throws: LogPayload.Unreadable.self) {
            let broken = old.replacing(#""widgets":2"#, with: #""widgets":"2""#)
            _ = try PushClientPayload.read(.init(broken.utf8))
        }
    }

    @Test func `what an older version kept of a webhook is kept of its timelines`() throws {
        let old =
            #"{"lanes":[{"sort":"everything","savedAt":1,"latest":8,"confirmed":6,"urgency":3,"#
            + #""answers":true,"held":4,"grace":5,"addresses":[]}],"addresses":[]}"#
        let lanes = try PushClientPayload.read(.init(old.utf8)).lanes
        #expect(lanes.count == 1 && lanes[.timelines]?.latest == 8 && lanes[.timelines]?.told == 0)
        #expect(lanes[.timelines]?.stamp == 0)
    }
}
