import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct FairQueueTests {
    private typealias Queue = FairQueue<String, Int>

    private func drain(_ queue: inout Queue) -> [Int] {
        var elements: [Int] = []
        while let entry = queue.popFirst() { elements.append(entry.element) }
        return elements
    }

    /// Each large element is sent only after the one before was served.
    @Test func `a debt is kept by a key that has nothing waiting`() {
        var queue = Queue(limits: .init(count: 10_000, cost: .max, quantum: 10))
        for element in 0..<2_000 { _ = queue.append(element, for: "small", cost: 1) }
        _ = queue.append(-1, for: "huge", cost: 500)
        var servedSmall = 0
        var servedHuge = 0
        while servedSmall < 1_900, let entry = queue.popFirst() {
            if entry.key == "small" {
                servedSmall += 1
            } else {
                servedHuge += 1
                _ = queue.append(-1, for: "huge", cost: 500)
            }
        }
        #expect(servedHuge <= 1 + 1_900 / 500 + 1)
    }

    @Test func `cost is bounded as count is, and an empty queue takes anything`() {
        var queue = Queue(limits: .init(count: 100, cost: 1_000))
        #expect(queue.append(0, for: "a", cost: .max) == nil)
        #expect(queue.append(1, for: "b", cost: 1) == .full)
        #expect(queue.popFirst()?.element == 0)
        #expect(queue.cost == 0)
        #expect(queue.append(1, for: "a", cost: 800) == nil)
        #expect(queue.append(2, for: "a", cost: 10) == .shareUsed)
        #expect(queue.append(2, for: "a", cost: 10, isShareBound: false) == nil)
        #expect(queue.append(3, for: "b", cost: 100) == nil)
        #expect(queue.append(3, for: "b", cost: 100) == .full)
    }

    /// A key that comes and goes keeps its place, and however many come, their places stay bounded.
    @Test func `memory is bounded whatever keys come and go`() {
        var queue = Queue(limits: .init(count: 100, cost: .max, quantum: 10))
        for element in 0..<5_000 {
            // Every second element leaves a debt behind.
            _ = queue.append(element, for: "key \(element)", cost: element % 2 * 1_000)
            _ = queue.append(-1, for: "always there", cost: 0)
            while queue.count > 1 { _ = queue.popFirst() }
        }
        #expect(queue.lines.count <= 2 * 1_024 + 1)
        #expect(queue.lineOfKey.count <= 2 * 1_024 + 1)
        for element in 0..<500 { _ = queue.append(element, for: "long", cost: 0) }
        while queue.popFirst() != nil {}
        #expect(queue.ring.isEmpty)
        #expect(queue.lines.allSatisfy { $0.longest <= 64 && $0.credit == 0 && !$0.hasTurn })
    }

    private struct Model {
        var waiting: [(key: String, element: Int, cost: Int)] = []

        func count(of key: String) -> Int { waiting.count { $0.key == key } }
        func cost(of key: String?) -> Int {
            waiting.reduce(0) { $0 + (key == nil || $1.key == key ? $1.cost : 0) }
        }
    }

    /// Compares the queue with a plain list: which elements are taken, in which order for each key,
    /// and which are refused. Between keys that both wait all the time, the difference in served
    /// cost stays bounded.
    @Test(arguments: 0..<60)
    func `random work agrees with a plain list`(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        let limits = Queue.Limits(
            count: random.pick([1, 5, 60]), cost: random.pick([1, 50, 5_000]),
            share: random.pick([1, 4]), quantum: random.pick([1, 7, 100]))
        let keys = (0..<random.pick([1, 2, 9])).map { "app \($0)" }
        let costMax = random.pick([1, 30, 300])
        var queue = Queue(limits: limits)
        var model = Model()
        // The served cost of each key since it last had nothing waiting.
        var served: [String: Int] = [:]
        var since: [String: [String: Int]] = [:]
        for element in 0..<4_000 {
            if random.below(100) < random.pick([40, 60, 100]) {
                let key = random.pick(keys)
                let cost = random.below(costMax + 1)
                let isBound = random.below(10) > 0
                var expected: FairQueue<String, Int>.Rejection?
                if !model.waiting.isEmpty {
                    let (countRoom, costRoom) = (
                        limits.count - model.waiting.count, limits.cost - model.cost(of: nil)
                    )
                    if countRoom < 1 || costRoom < cost {
                        expected = .full
                    } else if isBound, model.count(of: key) > 0,
                        model.count(of: key) >= (countRoom - 1) * limits.share
                            || model.cost(of: key) + cost > (costRoom - cost) * limits.share
                    {
                        expected = .shareUsed
                    }
                }
                let refusal = queue.append(element, for: key, cost: cost, isShareBound: isBound)
                #expect(refusal == expected)
                if refusal == nil {
                    if model.count(of: key) == 0 { since[key] = served }
                    model.waiting.append((key, element, cost))
                }
            } else {
                let entry = queue.popFirst()
                #expect((entry == nil) == model.waiting.isEmpty)
                guard let entry else { continue }
                let place = model.waiting.firstIndex { $0.key == entry.key }
                #expect(place.map { model.waiting[$0].element } == entry.element)
                if let place { model.waiting.remove(at: place) }
                served[entry.key, default: 0] += max(1, entry.cost)
                if model.count(of: entry.key) == 0 { since[entry.key] = nil }
                // No key that waits all the time falls behind by more than a turn and an element of
                // each kind.
                for (waiting, before) in since where waiting != entry.key {
                    let own = served[waiting, default: 0] - before[waiting, default: 0]
                    let other = served[entry.key, default: 0] - before[entry.key, default: 0]
                    #expect(other <= own + 2 * (limits.quantum + costMax + 1))
                }
            }
            #expect(queue.count == model.waiting.count)
            #expect(queue.cost == model.cost(of: nil))
        }
    }
}
