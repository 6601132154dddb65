import NIOCore
import Testing
import WidgetModel

@testable import GatewayTLS

@Suite struct ExpiryQueueTests {
    private static let start = NIODeadline.uptimeNanoseconds(1_000)

    @Test func whatIsSetPassesInOrderAndAtItsTime() {
        var queue = ExpiryQueue<Int>(ahead: .nanoseconds(10))
        for owner in 0..<5 {
            let due = queue.set(owner, now: Self.start + .nanoseconds(Int64(owner)))
            #expect(due == Self.start + .nanoseconds(Int64(owner) + 10))
        }
        #expect(queue.next { _, _ in true } == Self.start + .nanoseconds(10))
        #expect(queue.takePassed(now: Self.start + .nanoseconds(9)) { _, _ in true } == nil)
        var passed: [Int] = []
        while let owner = queue.takePassed(now: Self.start + .nanoseconds(12), { _, _ in true }) {
            passed.append(owner)
        }
        #expect(passed == [0, 1, 2])
        #expect(queue.count == 2)
    }

    @Test func whatIsOverNeitherPassesNorIsWaitedFor() {
        var queue = ExpiryQueue<Int>(ahead: .nanoseconds(10))
        for owner in 0..<100 { _ = queue.set(owner, now: Self.start) }
        let isSet = { (owner: Int, _: NIODeadline) in owner == 70 || owner == 80 }
        #expect(queue.next(isSet) == Self.start + .nanoseconds(10))
        #expect(queue.count == 30, "what is over before the next one is not kept")
        #expect(queue.takePassed(now: .distantFuture, isSet) == 70)
        #expect(queue.takePassed(now: .distantFuture, isSet) == 80)
        #expect(queue.takePassed(now: .distantFuture, isSet) == nil)
        #expect(queue.next(isSet) == nil && queue.count == 0)
    }

    /// Compares with a model that searches all deadlines, for histories of setting, ending and
    /// passing.
    @Test(arguments: 0..<50) func anyHistoryAgreesWithTheModel(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var queue = ExpiryQueue<Int>(ahead: .nanoseconds(20))
        var model: [Int: NIODeadline] = [:]
        var now = Self.start
        for owner in 0..<400 {
            now = now + .nanoseconds(Int64.random(in: 0...3, using: &generator))
            model[owner] = queue.set(owner, now: now)
            if Bool.random(using: &generator),
                let over = model.keys.randomElement(using: &generator)
            {
                model[over] = nil
            }
            let isSet = { (owner: Int, due: NIODeadline) in model[owner] == due }
            #expect(queue.next(isSet) == model.values.min())
            guard Int.random(in: 0..<4, using: &generator) == 0 else { continue }
            while let passed = queue.takePassed(now: now, isSet) {
                let due = model.removeValue(forKey: passed)
                #expect(due.map { $0 <= now } == true)
            }
            #expect(model.values.allSatisfy { $0 > now })
        }
    }
}

/// Input budgets, without sockets.
struct InputBudgetTests {
    private static func time(_ milliseconds: Int64) -> NIODeadline {
        .uptimeNanoseconds(UInt64(1_000_000_000 + milliseconds * 1_000_000))
    }

    private func spend(
        _ budget: inout InputBudget, _ cost: Int, _ rate: InputBudget.Rate, now: NIODeadline
    ) -> Bool { budget.spend(cost, rate, now: now) }

    @Test func aBurstIsAdmittedAndMoreIsNot() {
        let rate = InputBudget.Rate(burst: 100, perSecond: 10)
        var budget = InputBudget(now: Self.time(0))
        #expect(spend(&budget, 60, rate, now: Self.time(0)))
        #expect(spend(&budget, 40, rate, now: Self.time(0)))
        #expect(!spend(&budget, 1, rate, now: Self.time(99)))
        #expect(spend(&budget, 1, rate, now: Self.time(100)))
        #expect(!spend(&budget, 1, rate, now: Self.time(150)))
        #expect(spend(&budget, 100, rate, now: Self.time(60_000)))
        #expect(!spend(&budget, .max, rate, now: Self.time(120_000)))
    }

    @Test func aBucketThatRegainsNothingIsABurstAlone() {
        let rate = InputBudget.Rate(burst: 10, perSecond: 0)
        var budget = InputBudget(now: Self.time(0))
        #expect(spend(&budget, 10, rate, now: Self.time(0)))
        #expect(!spend(&budget, 1, rate, now: Self.time(1_000_000)))
    }

    @Test func aBucketOverflowsAndMayOweUnits() {
        let rate = InputBudget.Rate(burst: 100, perSecond: 10)
        var budget = InputBudget(now: Self.time(0))
        budget.settle(-50)
        #expect(budget.available(rate, now: Self.time(0)) == 100)
        budget.settle(60)
        budget.settle(-10)
        #expect(budget.available(rate, now: Self.time(0)) == 50)
        budget.settle(70)
        #expect(budget.available(rate, now: Self.time(0)) == -20)
        #expect(budget.available(rate, now: Self.time(2_100)) == 1)
    }

    /// Within any time no more is admitted than the burst and the units regained, and little less.
    @Test func aModelAdmitsTheSame() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            let rate = InputBudget.Rate(
                burst: .random(in: 1...5_000, using: &random),
                perSecond: .random(in: 1...5_000, using: &random))
            var budget = InputBudget(now: Self.time(0))
            var (now, left) = (Int64(0), Double(rate.burst))
            for _ in 0..<200 {
                let step = Int64.random(in: 0...300, using: &random)
                now += step
                left = min(
                    Double(rate.burst), left + Double(step) * Double(rate.perSecond) / 1_000)
                let cost = Int.random(in: 0...rate.burst, using: &random)
                let isAdmitted = budget.spend(cost, rate, now: Self.time(now))
                if isAdmitted {
                    // The model counts fractions, so it is ahead of whole units by less than one.
                    #expect(Double(cost) <= left + 1)
                    left -= Double(cost)
                } else {
                    #expect(Double(cost) > left - 2)
                    left = 0
                }
                left = max(0, left)
                // Continue both from the same state.
                if abs(Double(rate.burst - budget.spent) - left) < 3 {
                    left = Double(rate.burst - budget.spent)
                }
            }
        }
    }
}

/// Places, and the tokens of those who have them.
@Suite struct SlotTableTests {
    private final class Guest {}

    @Test func aTokenNamesOneOccupantOfAPlaceThatIsUsedAgain() {
        var table = SlotTable<Guest>()
        let (first, second, third) = (Guest(), Guest(), Guest())
        let tokens = [table.reserve(), table.reserve()]
        table[tokens[0]] = first
        table[tokens[1]] = second
        #expect(table.count == 2)
        #expect(table[tokens[0]] === first)
        #expect(table[tokens[1]] === second)
        table.remove(tokens[0])
        #expect(table[tokens[0]] == nil)
        #expect(table.count == 1)
        let next = table.reserve()
        table[next] = third
        #expect(UInt32(truncatingIfNeeded: next) == UInt32(truncatingIfNeeded: tokens[0]))
        #expect(next != tokens[0])
        #expect(next == table.token(at: UInt32(truncatingIfNeeded: next)))
        #expect(table[tokens[0]] == nil)
        #expect(table[next] === third)
        let occupants = table.occupants
        #expect(occupants.count == 2)
        #expect(occupants.first === third)
        #expect(occupants.last === second)
    }

    @Test func anOccupantLeavesOnce() {
        var table = SlotTable<Guest>()
        let token = table.reserve()
        table[token] = Guest()
        table.remove(token)
        table.remove(token)
        #expect(table.count == 0)
        let tokens = [table.reserve(), table.reserve()]
        #expect(Set(tokens.map { UInt32(truncatingIfNeeded: $0) }).count == 2)
    }
}
