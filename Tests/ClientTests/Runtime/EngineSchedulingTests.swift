import Foundation
import Testing
import WidgetModel

@testable import TimelineRuntime

/// The times at which the engine has stale timelines built, and the budget that this costs.
@Suite struct EngineSchedulingTests {
    private let panda = character("Power Panda")
    private let day = Duration.seconds(86_400)

    @Test func whatTheBudgetWithholdsIsStaleUntilThereIsSomeAgain() throws {
        var engine = runningEngine([panda]) { $0.schedule.budgetLimit = 1 }
        engine.hear(of: [panda], at: 11)
        engine.handle(.idMoved(attempt: 1, cursor(11)))
        engine.finish(panda)
        var now = Duration.seconds(60)
        #expect(engine.hear(of: [panda], at: 12, now: now) == [])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(12)), now: now) == [])
        #expect(engine.cursor == cursor(11), "what is withheld is acknowledged")
        #expect(engine.nextReload == date(86_400))
        #expect(engine.nextReload(of: panda) == date(86_400))
        var orders: [EngineAction] = []
        while orders.isEmpty, now < day * 2 {
            now = try #require(engine.nextWake)
            orders = engine.handle(.woke, now: now)
        }
        #expect(now == day)
        #expect(orders == [.saveBudgets, .build(panda)])
        engine.finish(panda, now: now)
        #expect(engine.cursor == cursor(12))
    }

    @Test func anActiveAppsReloadsDoNotCount() {
        var engine = runningEngine([panda]) { $0.schedule.budgetLimit = 1 }
        engine.handle(.activityChanged(.foreground))
        for sequence in UInt64(11)...12 {
            #expect(engine.hear(of: [panda], at: sequence) == [.build(panda)])
            engine.finish(panda)
        }
        engine.handle(.activityChanged([]))
        #expect(engine.hear(of: [panda], at: 13) == [.saveBudgets, .build(panda)])
    }

    @Test func aPolicyAsksAlsoAfterARestart() {
        var engine = runningEngine([panda], reloadDate: date(400))
        #expect(engine.nextReload == date(400))
        let wake = Duration.seconds(400)
        #expect(engine.nextWake == wake)
        #expect(engine.handle(.woke, now: wake) == [.saveBudgets, .build(panda)])
        engine.handle(.rebuilt(panda, milliseconds: 1, reloadDate: date(10_000)), now: wake)
        #expect(engine.nextReload == date(10_000))
        #expect(engine.cursor == cursor(10), "time made it stale")
    }

    @Test func noTimerSleepsLongerThanTheClockMayBeTrusted() {
        var engine = runningEngine([panda], reloadDate: date(1e6))
        #expect(engine.nextWake == .seconds(900))
        #expect(engine.handle(.woke, now: .seconds(900)) == [])
        #expect(engine.nextWake == .seconds(1800))
        // The clock is set to the day that the policy names.
        let orders = engine.handle(.woke, now: .seconds(1800), date: date(1e6))
        #expect(orders == [.saveBudgets, .build(panda)])
        engine = runningEngine([panda], reloadDate: date(100))
        // The clock is set back, so that a date a moment away becomes a day away.
        #expect(engine.handle(.woke, now: .seconds(100), date: date(-86_400)) == [])
        #expect(engine.nextWake == .seconds(1000))
    }

    @Test func aClockThatGoesBackIsNotedOnDiskWhereSomethingWasSpent() {
        var engine = runningEngine([panda])
        engine.hear(of: [panda], at: 11, now: .seconds(50))
        #expect(engine.handle(.woke, now: .seconds(51), date: date(20)) == [.saveBudgets])
        #expect(engine.handle(.woke, now: .seconds(52), date: date(21)) == [])
    }

    @Test func widgetsConfiguredAlikeAreCounted() throws {
        var engine = runningEngine([panda])
        var twice = registration([panda])
        twice.widgets[0].count = 2
        engine.handle(.configurationChanged(twice))
        engine.hear(of: [panda], at: 11)
        let reload = engine.records[.timeline(panda)]?.build?.reload
        #expect(try #require(reload).budgetsSpent == 2)
    }
}
