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

@Suite struct LogSamplerTests {
    @Test func `the first events of a window are logged, and its summary counts the others`() {
        var sampler = LogSampler<String>(perWindow: 2, window: 1_000)
        let logged = [0, 1, 2, 3, 999].map { sampler.admits("a", now: $0) }
        #expect(logged == [true, true, false, false, false])
        let summaries = [999, 1_000, 1_000].map { sampler.summaries(now: $0) }
        #expect(summaries == [[], [.init(subject: "a", suppressed: 3)], []])
        #expect(sampler.count == 0)
    }

    @Test func `a new window begins without a summary of the old one, too`() {
        var sampler = LogSampler<String>(perWindow: 1, window: 1_000)
        let logged = [0, 1, 1_000, 1_001].map { sampler.admits("a", now: $0) }
        #expect(logged == [true, false, true, false])
        let summaries = sampler.summaries(now: 2_000)
        #expect(summaries == [.init(subject: "a", suppressed: 2)])
    }

    @Test func `at the end nothing stays uncounted`() {
        var sampler = LogSampler<String>(perWindow: 1, window: 1_000, subjectsMax: 1)
        for subject in ["a", "a", "b", "c"] { _ = sampler.admits(subject, now: 0) }
        let summaries = [1, 1].map { sampler.summaries(now: $0, atEnd: true) }
        #expect(
            summaries == [
                [.init(subject: "a", suppressed: 1), .init(subject: nil, suppressed: 1)], [],
            ])
    }

    @Test func `subjects beyond the limit share one count until others expire`() {
        var sampler = LogSampler<Int>(perWindow: 1, window: 1_000, subjectsMax: 10)
        let logged = (0..<1_000).filter { sampler.admits($0, now: 0) }
        #expect(logged == Array(0...10))
        #expect(sampler.count == 10)
        let summaries = sampler.summaries(now: 1_000)
        #expect(summaries == [.init(subject: nil, suppressed: 989)])
        let later = sampler.admits(5_000, now: 1_000)
        #expect(later)
        #expect(sampler.count == 1)
    }

    /// Every event is either logged or contained in a summary, and no window of a subject has more
    /// than its share.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `no event is lost and no window exceeds its share`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let perWindow = 1 + Int(random.next() % 4)
        var sampler = LogSampler<UInt64>(perWindow: perWindow, window: 100)
        var now: Int64 = 0
        var events: [UInt64: Int] = [:]
        var accounted: [UInt64: Int] = [:]
        var times: [UInt64: [Int64]] = [:]
        for step in 0..<5_000 {
            now += Int64(random.next() % 20)
            let subject = random.next() % 5
            events[subject, default: 0] += 1
            if sampler.admits(subject, now: now) {
                accounted[subject, default: 0] += 1
                times[subject, default: []].append(now)
            }
            guard random.next() % 40 == 0 || step == 4_999 else { continue }
            for summary in sampler.summaries(now: now, atEnd: step == 4_999) {
                accounted[summary.subject ?? .max, default: 0] += summary.suppressed
            }
        }
        #expect(accounted == events)
        for times in times.values {
            // Windows begin with their first event, so any span of one window touches two.
            for (index, time) in times.enumerated() where index >= 2 * perWindow {
                #expect(time - times[index - 2 * perWindow] >= 100)
            }
        }
    }
}

@Suite struct PortionsTests {
    @Test func `a portion costs at most the budget, or is one element`() {
        #expect(
            [1, 2, 3, 9, 1, 5, 1].portions(costing: 6) { $0 }.map(Array.init)
                == [[1, 2, 3], [9], [1, 5], [1]])
        #expect([].portions(costing: 6) { $0 }.isEmpty)
        #expect([7].portions(costing: 6) { $0 }.map(Array.init) == [[7]])
        #expect([7, 7].portions(costing: 6) { $0 }.map(Array.init) == [[7], [7]])
    }
}
