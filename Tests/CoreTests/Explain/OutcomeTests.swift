import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct OutcomeTests {
    private let widget = Subscription(place: .widget(0), kind: "k", count: 1)
    private let set = Subscription(place: .recommendations(0), kind: "k", count: 1)
    private let record = client([], confirmed: ["k": 5])

    private func outcome(
        at sequence: UInt64 = 10, of item: Subscription? = nil, stream: StreamDeliveryState? = nil,
        push: Outcome? = nil, _ change: (inout DeliveryProgress) -> Void = { _ in }
    ) -> Outcome {
        var hearing = DeliveryProgress()
        change(&hearing)
        return Outcome(
            of: sequence, for: item ?? widget, of: record, hearing, stream: stream, push: push)
    }

    @Test func `only the client's own word confirms`() {
        #expect(outcome { $0.confirmed(upTo: 10) } == .confirmed)
        #expect(outcome(push: .confirmed) == .confirmed)
        #expect(outcome { $0.confirmed(upTo: 9) } != .confirmed)
        #expect(outcome { $0.polled(upTo: 10, kinds: nil) } == .sent(.poll))
        #expect(outcome { $0.streamed(upTo: 10, kinds: nil) } == .sent(.stream))
        #expect(outcome(stream: .sent) == .sent(.stream))
    }

    @Test func `a set is confirmed by name, and by no cursor`() {
        #expect(outcome(of: set) { $0.confirmed(upTo: 99) } == .unreachable(.awaitsClient))
        #expect(outcome(at: 5, of: set) == .confirmed)
        #expect(outcome(at: 6, of: set, push: .confirmed) == .unreachable(.awaitsClient))
    }

    @Test func `what was said of one kind says nothing of others`() {
        #expect(outcome { $0.polled(upTo: 10, kinds: ["k"]) } == .sent(.poll))
        #expect(outcome { $0.polled(upTo: 10, kinds: ["l"]) } == .unreachable(.awaitsClient))
        #expect(outcome { $0.streamed(upTo: 9, kinds: ["k"]) } == .unreachable(.awaitsClient))
        #expect(outcome() == .unreachable(.awaitsClient))
        #expect(
            outcome { $0 = DeliveryProgress(isRestored: true) } == .unreachable(.unknownSinceStart))
        #expect(
            outcome {
                $0 = DeliveryProgress(isRestored: true)
                $0.confirmed(upTo: 9)
            } == .unreachable(.awaitsClient))
    }

    @Test func `the client's cursors are remembered for a bounded number of kinds`() {
        var hearing = DeliveryProgress()
        hearing.polled(upTo: 7, kinds: Set((0..<64).map { "k\($0)" }))
        hearing.polled(upTo: 7, kinds: ["more"])
        #expect(hearing.polled("k3") == 7 && hearing.polled("more") == 0)
        hearing.polled(upTo: 8, kinds: ["k3"])
        #expect(hearing.polled("k3") == 8)
    }

    @Test func `what was said comes before what is about to be`() {
        #expect(
            outcome(stream: .waits(until: 5)) { $0.polled(upTo: 10, kinds: nil) } == .sent(.poll))
        #expect(outcome(stream: .collapsed(into: 12)) == .collapsed(into: 12))
        #expect(
            outcome(stream: .waits(until: 5), push: .withheld(.grace, until: 9))
                == .withheld(.collapse, until: 5))
        #expect(outcome(stream: .waits(until: 5), push: .sent(.widgets)) == .sent(.widgets))
        #expect(outcome(stream: .lagging) == .withheld(.slowReader, until: nil))
        #expect(outcome(push: .withheld(.budget, until: 9)) == .withheld(.budget, until: 9))
        #expect(outcome(push: .unreachable(.deadAddress)) == .unreachable(.deadAddress))
    }

    @Test func `of several streams the one that says it first counts`() {
        let all: [StreamDeliveryState] = [
            .sent, .collapsed(into: 3), .collapsed(into: 4), .waits(until: 1), .waits(until: 2),
            .lagging,
        ]
        for (place, left) in all.enumerated() {
            #expect(left.sooner(nil) == left)
            for (other, right) in all.enumerated() {
                #expect(left.sooner(right) == all[min(place, other)])
            }
        }
    }
}
