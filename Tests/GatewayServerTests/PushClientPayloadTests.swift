import GatewayCore
import GatewayPush
import GatewayRecords
import Testing

@Suite struct PushClientPayloadTests {
    @Test func `what is kept of a client is read back as it was`() throws {
        let address = DeliveryAttempts.SavedAddress(
            id: .max, delivered: 7, spokeSince: 4, givenUp: 3, failures: 2, repeats: 1,
            awaitsSign: true, isUsable: false, wait: 9, repeatWait: 11)
        let attempts = DeliveryAttempts.Saved(
            savedAt: 1, latest: 8, confirmed: 6, told: 7, urgency: 3, isKnownToAnswer: true,
            held: 4, grace: 5, addresses: [address])
        let saved = PushScheduler.SavedClient(
            lanes: [
                .timelines: attempts, .recommendations: attempts, .control(id: "a b"): attempts,
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
                savedAt: 1, widgets: 2, controls: 3, background: 4,
                pushed: [.init(kind: .max, age: 5)]))
        #expect(try PushClientPayload.read(PushClientPayload.data(saved)) == saved)
        #expect(throws: LogPayload.Unreadable.self) {
            _ = try PushClientPayload.read(.init(#"{"lanes":[{}],"addresses":[]}"#.utf8))
        }
    }

    @Test func `what an older version kept of a webhook is kept of its timelines`() throws {
        let old =
            #"{"lanes":[{"sort":"everything","savedAt":1,"latest":8,"confirmed":6,"urgency":3,"#
            + #""answers":true,"held":4,"grace":5,"addresses":[]}],"addresses":[]}"#
        let lanes = try PushClientPayload.read(.init(old.utf8)).lanes
        #expect(lanes.count == 1 && lanes[.timelines]?.latest == 8 && lanes[.timelines]?.told == 0)
    }
}
