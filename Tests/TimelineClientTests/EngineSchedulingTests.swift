import Foundation
import Testing
import WidgetModel

@testable import TimelineClient

/// The times at which the engine has stale timelines built, and the budget that this costs.
@Suite struct EngineSchedulingTests {
    private let panda = character("Power Panda")
    private let day = Duration.seconds(86_400)

    /// Returns an engine that shows `widgets`, registered at sequence 10, with a stream open.
    private func running(
        _ widgets: [WidgetInfo], budgets: [WidgetInfo: ReloadBudget] = [:],
        reloadDate: Date? = nil, adjust: (inout ReloadScheduler.Settings) -> Void = { _ in }
    ) -> ReloadEngine {
        var settings = ReloadEngine.Settings()
        settings.schedule.policyJitterMax = 0
        adjust(&settings.schedule)
        var positions: [Archived: EngineState.Position] = [:]
        for widget in widgets {
            positions[.timeline(widget)] = .init(cursor: cursor(10), awaitsBuild: false)
        }
        var engine = ReloadEngine(
            state: EngineState(
                registered: registration(widgets), position: cursor(10), positions: positions,
                budgets: budgets),
            desired: registration(widgets), settings: settings, seed: 1)
        let timelines = Set(widgets).map {
            EngineEvent.KeptTimeline(widget: $0, reloadDate: reloadDate)
        }
        _ = engine.handle(.started(timelines), now: .zero)
        _ = engine.handle(.opened(attempt: 1, resumedFrom: cursor(10)), now: .zero)
        return engine
    }

    private func notify(
        _ engine: inout ReloadEngine, _ sequence: UInt64, _ now: Duration
    ) -> [EngineAction] {
        engine.handle(
            .notification(attempt: 1, claims([panda], sequence: sequence)), now: now)
    }

    private func finish(
        _ engine: inout ReloadEngine, _ now: Duration, reloadDate: Date? = nil
    ) -> [EngineAction] {
        engine.handle(.rebuilt(panda, milliseconds: 1, reloadDate: reloadDate), now: now)
    }

    @Test func notificationsMillisecondsApartAreEachHonoured() {
        var engine = running([panda])
        for second in 0..<5 {
            let now = Duration.milliseconds(second)
            #expect(notify(&engine, 11 + UInt64(second), now) == [.saveBudgets, .build(panda)])
            _ = finish(&engine, now)
        }
    }

    @Test func whatTheBudgetWithholdsIsStaleUntilThereIsSomeAgain() throws {
        var engine = running([panda]) { $0.budgetLimit = 1 }
        _ = notify(&engine, 11, .zero)
        _ = engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero)
        _ = finish(&engine, .zero)
        #expect(notify(&engine, 12, .seconds(60)) == [])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(12)), now: .seconds(60)) == [])
        #expect(engine.cursor == cursor(11), "what is withheld is acknowledged")
        #expect(engine.nextReload == date(86_400))
        #expect(engine.nextReload(of: panda) == date(86_400))
        var now = Duration.seconds(60)
        var orders: [EngineAction] = []
        while orders.isEmpty, now < day * 2 {
            now = try #require(engine.nextWake)
            orders = engine.handle(.woke, now: now)
        }
        #expect(now == day)
        #expect(orders == [.saveBudgets, .build(panda)])
        _ = finish(&engine, now)
        #expect(engine.cursor == cursor(12))
    }

    @Test func aPersonsReloadIsGuaranteedAndTakesAlongWhatWasWithheld() {
        var engine = running([panda]) { $0.budgetLimit = 1 }
        _ = notify(&engine, 11, .zero)
        _ = finish(&engine, .zero)
        #expect(notify(&engine, 12, .zero) == [])
        let orders = engine.handle(
            .reloadRequested(.timeline(panda), .interaction), now: .seconds(1))
        #expect(orders == [.build(panda)])
        _ = finish(&engine, .seconds(1))
        #expect(engine.nextReload == nil)
    }

    @Test func anActiveAppsReloadsDoNotCount() {
        var engine = running([panda]) { $0.budgetLimit = 1 }
        _ = engine.handle(.activityChanged(.foreground), now: .zero)
        for sequence in UInt64(11)...20 {
            #expect(notify(&engine, sequence, .zero) == [.build(panda)])
            _ = finish(&engine, .zero)
        }
        _ = engine.handle(.activityChanged([]), now: .zero)
        #expect(notify(&engine, 21, .zero) == [.saveBudgets, .build(panda)])
    }

    @Test func theFirstTimelineDoesNotCountAndWhatIsToldDuringItDoes() throws {
        var engine = ReloadEngine(
            state: EngineState(), desired: registration([panda]), seed: 1)
        _ = engine.handle(.started([]), now: .zero)
        #expect(
            engine.handle(.registered(cursor(10)), now: .zero).contains(.build(panda)))
        var budget = try #require(engine.scheduler.budget(of: panda))
        #expect(budget.remaining(now: date(0)) == ReloadBudget.defaultLimit)
        #expect(notify(&engine, 11, .zero) == [])
        #expect(finish(&engine, .zero).contains(.saveBudgets))
        budget = try #require(engine.scheduler.budget(of: panda))
        #expect(budget.remaining(now: date(0)) == ReloadBudget.defaultLimit - 1)
    }

    @Test func aPolicyAsksAlsoAfterARestart() throws {
        var engine = running([panda], reloadDate: date(400))
        #expect(engine.nextReload == date(400))
        let wake = try #require(engine.nextWake)
        #expect(wake == .seconds(400))
        #expect(engine.handle(.woke, now: wake) == [.saveBudgets, .build(panda)])
        _ = finish(&engine, wake, reloadDate: date(10_000))
        #expect(engine.nextReload == date(10_000))
        #expect(engine.cursor == cursor(10), "time made it stale")
    }

    @Test func noTimerSleepsLongerThanTheClockMayBeTrusted() throws {
        var engine = running([panda], reloadDate: date(1e6))
        #expect(engine.nextWake == .seconds(900))
        #expect(engine.handle(.woke, now: .seconds(900)) == [])
        #expect(engine.nextWake == .seconds(1800))
        // The clock is set to the day that the policy names.
        let orders = engine.handle(.woke, now: .seconds(1800), date: date(1e6))
        #expect(orders == [.saveBudgets, .build(panda)])
        var other = running([panda], reloadDate: date(100))
        // The clock is set back, so that a date a moment away becomes a day away.
        #expect(other.handle(.woke, now: .seconds(100), date: date(-86_400)) == [])
        #expect(other.nextWake == .seconds(1000))
    }

    @Test func aClockThatGoesBackIsNotedOnDiskWhereSomethingWasSpent() {
        var engine = running([panda])
        _ = notify(&engine, 11, .seconds(50))
        #expect(engine.handle(.woke, now: .seconds(51), date: date(20)) == [.saveBudgets])
        #expect(engine.handle(.woke, now: .seconds(52), date: date(21)) == [])
    }

    @Test func widgetsConfiguredAlikeAreCounted() throws {
        var engine = running([panda])
        var twice = registration([panda])
        twice.widgets[0].count = 2
        _ = engine.handle(.configurationChanged(twice), now: .zero)
        _ = notify(&engine, 11, .zero)
        let reload = engine.records[.timeline(panda)]?.build?.reload
        #expect(try #require(reload).budgetsSpent == 2)
    }

    @Test func whatWasSpentIsSpentAfterARestart() throws {
        let path = NSTemporaryDirectory() + "budget-\(UUID().uuidString)"
        let file = ClientArchive(directory: path)
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(file.loadBudgets(limit: 2).isEmpty)
        var engine = running([panda, status]) { $0.budgetLimit = 2 }
        _ = notify(&engine, 11, .zero)
        try file.saveBudgets(engine.state.budgets)
        #expect(file.loadBudgets(limit: 2) == engine.state.budgets)
        var again = running([panda, status], budgets: file.loadBudgets(limit: 2)) {
            $0.budgetLimit = 2
        }
        #expect(notify(&again, 11, .seconds(2)) == [.saveBudgets, .build(panda)])
        _ = finish(&again, .seconds(2))
        #expect(notify(&again, 12, .seconds(3)) == [])
        let due = try #require(again.nextReload(of: panda))
        #expect(due == date(86_400))
        try Data("{}".utf8).write(to: URL(fileURLWithPath: file.budgetsPath))
        #expect(file.loadBudgets(limit: 2).isEmpty)
    }
}
