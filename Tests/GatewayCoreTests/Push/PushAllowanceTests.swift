import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct PushAllowanceTests {
    static let day: Int64 = 86_400_000

    @Test func `what was saved up goes at once and the rest comes back evenly`() {
        var allowance = PushAllowance(.init(perDay: 48, burst: 9, reserve: 4), now: 0)
        for _ in 0..<5 {
            #expect(allowance.due(.normal, now: 0) == 0)
            allowance.spend(now: 0)
        }
        // 40 a day: one every 36 minutes.
        #expect(allowance.due(.normal, now: 0) == 36 * 60_000)
        #expect(allowance.due(.normal, now: 36 * 60_000 - 1) == 36 * 60_000)
        #expect(allowance.due(.normal, now: 36 * 60_000) == 36 * 60_000)
    }

    @Test func `high urgency borrows from the reserve, and the rest waits until it is back`() {
        var allowance = PushAllowance(.init(perDay: 48, burst: 9, reserve: 4), now: 0)
        for _ in 0..<9 {
            #expect(allowance.due(.high, now: 0) == 0)
            allowance.spend(now: 0)
        }
        #expect(allowance.due(.high, now: 0) == 36 * 60_000)
        for urgency in [Urgency.veryLow, .low, .normal] {
            #expect(allowance.due(urgency, now: 0) == 5 * 36 * 60_000)
        }
    }

    @Test(arguments: [(-3, 9, 4), (0, 0, 0), (1, 1, 1), (1, 100, 100), (.max, .max, .max)])
    func `terms out of range count as the nearest in it`(perDay: Int, burst: Int, reserve: Int) {
        let terms = PushAllowance.Terms(perDay: perDay, burst: burst, reserve: reserve)
        #expect((1...100_000).contains(terms.perDay))
        #expect((1...terms.perDay).contains(terms.burst))
        #expect((0..<terms.burst).contains(terms.reserve))
        #expect(terms.refill >= 1)
        let allowance = PushAllowance(terms, now: .min)
        #expect(allowance.due(.normal, now: .max) == .max)
    }

    /// Pushes as soon as they are due, at random, or with pauses: the definition counts them in
    /// every window that starts with one of them.
    @Test(arguments: 0..<40)
    func `never more than allowed in any window`(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let terms = PushAllowance.Terms(
            perDay: random.pick([1, 2, 5, 48]), burst: 1 + random.below(12),
            reserve: random.below(6))
        var allowance = PushAllowance(terms, now: 0)
        var now: Int64 = 0
        var pushes: [Int64] = []
        for _ in 0..<600 {
            let urgency = random.pick(Urgency.allCases)
            let due = allowance.due(urgency, now: now)
            if random.happens(60) {
                now = due
            } else {
                now += Int64(random.below(random.pick([1_000, 3_600_000, 200_000_000])))
            }
            // What is due stays due, and what comes back never takes longer than it was said to.
            if now >= due { #expect(allowance.due(urgency, now: now) == now) }
            guard allowance.due(urgency, now: now) <= now else { continue }
            allowance.spend(now: now)
            pushes.append(now)
        }
        for (place, start) in pushes.enumerated() {
            let window = pushes[place...].prefix { $0 - start < Self.day }
            #expect(window.count <= terms.perDay)
            for (count, end) in window.enumerated() {
                let refilled = (end - start) * terms.refill / Self.day
                #expect(count + 1 <= terms.burst + Int(refilled))
            }
        }
    }
}
