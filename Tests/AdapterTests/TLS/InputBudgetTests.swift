import NIOCore
import Testing

@testable import GatewayTLS

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
