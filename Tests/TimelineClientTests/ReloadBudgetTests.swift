import Foundation
import Testing
import WidgetModel

@testable import TimelineClient

@Suite struct ReloadBudgetTests {
    private let day: TimeInterval = 86_400

    @Test func soManyReloadsMayRunAndNoMore() {
        var budget = ReloadBudget(limit: 3)
        for spent in 0..<3 {
            #expect(budget.remaining(now: date(10)) == 3 - spent)
            #expect(budget.nextReload(now: date(10)) == date(10))
            budget.spend(now: date(10))
        }
        #expect(budget.remaining(now: date(10)) == 0)
        #expect(budget.nextReload(now: date(10)) == date(10 + day))
    }

    @Test func aReloadCountsForADayAndNothingHappensAtMidnight() {
        var budget = ReloadBudget(limit: 2)
        budget.spend(now: date(1000))
        budget.spend(now: date(5000))
        #expect(budget.nextReload(now: date(6000)) == date(1000 + day))
        #expect(budget.remaining(now: date(999.5 + day)) == 0)
        #expect(budget.remaining(now: date(1000 + day)) == 1)
        budget.spend(now: date(1000 + day))
        #expect(budget.nextReload(now: date(1000 + day)) == date(5000 + day))
        #expect(budget.remaining(now: date(1000 + 2 * day)) == 2)
    }

    @Test func limitsOutOfBoundsAreTheNearestInThem() {
        #expect(ReloadBudget(limit: -1).limit == 1)
        #expect(ReloadBudget(limit: .max).limit == ReloadBudget.limitMax)
    }

    @Test func itHoldsNoMoreDatesThanItsLimit() {
        var budget = ReloadBudget(limit: 4)
        for second in 0..<1000 { budget.spend(now: date(Double(second))) }
        #expect(budget.dates == (996..<1000).map { date(Double($0)) })
        #expect(budget.nextReload(now: date(1000)) == date(996 + day))
    }

    @Test func whatAClockThatWentBackPlacesInTheFutureCountsAsMadeNow() {
        var budget = ReloadBudget(limit: 2)
        budget.spend(now: date(50))
        budget.spend(now: date(1_000_000))
        #expect(budget.nextReload(now: date(100)) == date(50 + day))
        budget.spend(now: date(100))
        #expect(budget.nextReload(now: date(100)) == date(100 + day))
        // This happens once: a clock that stays behind does not renew the budget with every
        // question.
        #expect(budget.nextReload(now: date(5000)) == date(100 + day))
        #expect(budget.remaining(now: date(100 + day)) == 2)
    }

    @Test func aJumpForthAndBackGivesNothingAway() {
        var budget = ReloadBudget(limit: 2)
        budget.spend(now: date(10))
        budget.spend(now: date(20))
        #expect(budget.remaining(now: date(30 + 5 * day)) == 2)
        #expect(budget.remaining(now: date(30)) == 0)
        #expect(budget.nextReload(now: date(30)) == date(10 + day))
    }

    @Test func itSurvivesARestart() throws {
        var budget = ReloadBudget(limit: 3)
        for second in [1.5, 70, 800] { budget.spend(now: date(second)) }
        let text = budget.json.text
        var resumed = try #require(ReloadBudget(try JSONValue(parsing: text), limit: 3))
        #expect(resumed == budget)
        #expect(resumed.nextReload(now: date(900)) == date(1.5 + day))
        #expect(ReloadBudget(budget.json, limit: 2)?.dates == [date(70), date(800)])
        #expect(ReloadBudget(budget.json, limit: 50)?.dates == budget.dates)
    }

    @Test func aRestartWithAClockThatWentBackWithholdsForADayAtMost() throws {
        var budget = ReloadBudget(limit: 1)
        budget.spend(now: date(1000 * day))
        var resumed = try #require(ReloadBudget(budget.json, limit: 1))
        #expect(resumed.nextReload(now: date(0)) == date(day))
        #expect(resumed.nextReload(now: date(60)) == date(day))
    }

    @Test func integersAndUnsortedDatesAreReadToo() {
        let budget = ReloadBudget([.integer(30), .number(10.5)])
        #expect(budget?.dates == [date(10.5), date(30)])
    }

    @Test func whatIsNotABudgetIsNotRead() {
        #expect(ReloadBudget(.null) == nil)
        #expect(ReloadBudget(["yesterday"]) == nil)
        #expect(ReloadBudget([.number(.infinity)]) == nil)
        #expect(ReloadBudget([.number(.nan)]) == nil)
        let tooMany = [JSONValue](repeating: 1, count: ReloadBudget.limitMax + 1)
        #expect(ReloadBudget(.array(tooMany)) == nil)
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
            case 2: budget = try #require(ReloadBudget(budget.json, limit: budget.limit))
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
