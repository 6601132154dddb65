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
        // A rate of 40 a day is one every 36 minutes.
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

    @Test func `the savings say how much is left, and when more comes`() {
        var allowance = PushAllowance(.init(perDay: 48, burst: 9, reserve: 4), now: 0)
        #expect(allowance.savings(now: 0).left == 9 && allowance.savings(now: 0).refillsAt == nil)
        for _ in 0..<5 { allowance.spend(now: 0) }
        let used = allowance.savings(now: 60_000)
        #expect(used.left == 4 && used.reserved == 4 && used.terms.perDay == 48)
        #expect(used.refillsAt == Int64(36 * 60_000))
        // Without pushes beyond the reserve, the next normal one waits for the refill.
        #expect(allowance.due(.normal, now: 60_000) == used.refillsAt)
        for _ in 0..<4 { allowance.spend(now: 60_000) }
        let empty = allowance.savings(now: 60_000)
        #expect(empty.left == 0 && empty.reserved == 0)
        #expect(empty.refillsAt == allowance.due(.high, now: 60_000))
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

    @Test func `under other terms the share that was spent stays spent`() {
        let usual = PushAllowance.Terms(perDay: 48, burst: 9, reserve: 0)
        func left(after spent: Int, _ terms: PushAllowance.Terms...) -> Int {
            var allowance = PushAllowance(usual, now: 0)
            for _ in 0..<spent { allowance.spend(now: 0) }
            for terms in terms { allowance.adopt(terms, now: 0) }
            var left = 0
            while allowance.due(.high, now: 0) == 0 {
                allowance.spend(now: 0)
                left += 1
            }
            return left
        }
        let small = PushAllowance.Terms(perDay: 24, burst: 4, reserve: 0)
        let large = PushAllowance.Terms(perDay: 480, burst: 90, reserve: 0)
        #expect(left(after: 0, small) == 4)
        #expect(left(after: 3, small) == 2)
        #expect(left(after: 6, small) == 1)
        #expect(left(after: 9, small) == 0)
        #expect(left(after: 3, small, usual) == 6)
        #expect(left(after: 9, small, usual) == 0)
        #expect(left(after: 0, large) == 90)
        #expect(left(after: 3, large) == 60)
        #expect(left(after: 9, large) == 0)
        #expect(left(after: 3, large, usual) == 6)
        let most = PushAllowance.Terms(perDay: .max, burst: .max, reserve: 0)
        #expect(left(after: 0, most, most) == 100_000)
        #expect(left(after: 3, usual) == 6)
    }

    /// Terms of one shape, as a configuration makes them, change all the time. No day has more
    /// pushes than the largest terms allow.
    @Test(arguments: 0..<20)
    func `changing terms never allows more than the largest`(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        func terms() -> PushAllowance.Terms {
            let scale = 1 + random.below(8)
            return PushAllowance.Terms(perDay: 16 * scale, burst: 3 * scale, reserve: 0)
        }
        var inForce = terms()
        var largest = inForce.perDay
        var allowance = PushAllowance(inForce, now: 0)
        var now: Int64 = 0
        var pushes: [Int64] = []
        for _ in 0..<800 {
            now += Int64(random.below(random.pick([1, 60_000, 3_600_000])))
            if random.happens(20) {
                let before = allowance.credit(now: now)
                let next = terms()
                allowance.adopt(next, now: now)
                let after = allowance.credit(now: now)
                #expect(after <= next.creditMax)
                let share = Double(before) / Double(inForce.creditMax)
                #expect(Double(after) / Double(next.creditMax) <= share + 1e-12)
                inForce = next
                largest = max(largest, next.perDay)
            }
            while random.happens(80), allowance.due(.high, now: now) <= now {
                allowance.spend(now: now)
                pushes.append(now)
            }
        }
        for (place, start) in pushes.enumerated() {
            #expect(pushes[place...].prefix { $0 - start < Self.day }.count <= largest)
        }
    }

    /// Pushes go out as soon as they are due, at random, or with pauses. The definition counts them
    /// in every window that starts with one of them.
    @Test(arguments: 0..<40)
    func `never more than allowed in any window`(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
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
            // A due push stays due, and the wait for the next never takes longer than announced.
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
