import Foundation
import Testing
import WidgetModel

@testable import TimelineRuntime

/// What is read of a budget. The models of the scheduler and of the engine spend it.
@Suite struct ReloadBudgetTests {
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
}
