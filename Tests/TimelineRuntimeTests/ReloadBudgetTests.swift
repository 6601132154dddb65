import Foundation
import Testing
import WidgetModel

@testable import TimelineRuntime

@Suite struct ReloadBudgetTests {
    private let day: TimeInterval = 86_400

    @Test func theNewestReloadsThatTheLimitAllowsAreRead() {
        let budget = ReloadBudget([.number(70.5), .integer(30), .number(10.5)], limit: 2)
        #expect(budget?.dates == [date(30), date(70.5)])
        #expect(ReloadBudget([1, 2], limit: -1)?.dates == [date(2)])
        #expect(ReloadBudget(limit: .max).limit == ReloadBudget.limitMax)
    }

    @Test func whatIsNotABudgetIsNotRead() {
        let tooMany = [JSONValue](repeating: 1, count: ReloadBudget.limitMax + 1)
        let others: [JSONValue] = [
            .null, ["yesterday"], [.number(.infinity)], [.number(.nan)], .array(tooMany),
        ]
        for other in others { #expect(ReloadBudget(other) == nil) }
    }

    /// The model keeps every date forever and counts.
    @Test(arguments: 0..<60)
    func itAnswersLikeAListOfAllReloads(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        var budget = ReloadBudget(limit: Int.random(in: 1...6, using: &generator))
        var all: [Date] = []
        var now = date(0)
        for _ in 0..<600 {
            switch Int.random(in: 0..<12, using: &generator) {
            case 0: now -= Double(Int.random(in: 0...200_000, using: &generator))
            case 1: now += Double(Int.random(in: 0...200_000, using: &generator))
            case 2:
                // The clock may go back during a restart.
                budget = try #require(ReloadBudget(budget.json, limit: budget.limit))
                now -= Double(Int.random(in: 0...20_000, using: &generator))
            default: now += Double(Int.random(in: 0...20_000, using: &generator))
            }
            all = all.map { min($0, now) }
            func left(at moment: Date) -> Int {
                budget.limit - all.count { moment < $0 + day }
            }
            #expect(budget.remaining(now: now) == max(0, left(at: now)))
            let next = budget.nextReload(now: now)
            #expect(left(at: next) > 0)
            #expect(next == now || left(at: next - 1) <= 0)
            if Int.random(in: 0..<3, using: &generator) == 0 || next == now {
                budget.spend(now: now)
                all.append(now)
            }
        }
    }
}
