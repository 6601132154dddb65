import Foundation
import Testing
import WidgetModel

@testable import TimelineClient

/// Tests for "Hide sensitive content": how protected files affect the timelines built from them.
@Suite struct EngineLockTests {
    private let panda = character("Power Panda")

    /// An engine that shows a widget with protected files and one without, with a stream open.
    private func running(
        lock: DeviceLock = .unlocked, settings: ReloadEngine.Settings = .init()
    ) -> ReloadEngine {
        var settings = settings
        settings.protections = [panda.kind: .complete, status.kind: .none]
        let widgets = [panda, status]
        var engine = ReloadEngine(
            state: EngineState(
                registered: registration(widgets), position: cursor(10),
                positions: [
                    .timeline(panda): .init(cursor: cursor(10), awaitsBuild: false),
                    .timeline(status): .init(cursor: cursor(10), awaitsBuild: false),
                ]), desired: registration(widgets), settings: settings, seed: 1)
        _ = engine.handle(.started(kept(widgets), lock: lock), now: .zero)
        _ = engine.handle(.opened(attempt: 1, resumedFrom: cursor(10)), now: .zero)
        return engine
    }

    @Test func whatIsToldWhileLockedIsBuiltAfterUnlockAndHoldsTheCursorBackAlone() {
        var engine = running()
        #expect(engine.handle(.lockChanged(.lockedWithPasscode), now: .zero) == [])
        let told = claims([panda, status], sequence: 11)
        #expect(
            engine.handle(.notification(attempt: 1, told), now: .zero) == [
                .saveBudgets, .build(status),
            ])
        _ = engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero)
        var done = Acknowledgement(cursor: cursor(10))
        done.rebuilt = [.init(widget: status, milliseconds: 1)]
        #expect(
            engine.handle(.rebuilt(status, milliseconds: 1, reloadDate: nil), now: .zero) == [
                .save, .acknowledge(done),
            ], "what waits for the lock is settled, neither rebuilt nor failed")
        #expect(engine.nextWake == nil, "a timer for what only a person can end")
        #expect(engine.nextReload == nil)
        #expect(
            engine.handle(.lockChanged(.unlocked), now: .seconds(9)) == [
                .saveBudgets, .build(panda),
            ])
        _ = engine.handle(.acknowledged, now: .seconds(9))
        _ = engine.handle(.rebuilt(panda, milliseconds: 1, reloadDate: nil), now: .seconds(9))
        #expect(engine.cursor == cursor(11))
    }

    @Test func aBuildThatTheLockOvertookIsNoFailure() {
        var engine = running()
        _ = engine.handle(.notification(attempt: 1, claims([panda], sequence: 11)), now: .zero)
        _ = engine.handle(.lockChanged(.lockedWithoutPasscode), now: .zero)
        let orders = engine.handle(.buildFailed(panda, reason: "not permitted"), now: .zero)
        #expect(orders == [], "the gateway is told of a failure")
        #expect(engine.nextWake == nil)
        #expect(
            engine.handle(.lockChanged(.unlocked), now: .zero) == [.build(panda)],
            "it waits for a failure that was none, or spends again")
    }

    @Test func aBuildThatTheLockOvertookSpendsOnceHoweverOftenAndWaitsForNoBudget() {
        var settings = ReloadEngine.Settings()
        settings.schedule.budgetLimit = 1
        var engine = running(settings: settings)
        _ = engine.handle(.notification(attempt: 1, claims([panda], sequence: 11)), now: .zero)
        for second in 1...3 {
            let now = Duration.seconds(second)
            _ = engine.handle(.lockChanged(.lockedWithPasscode), now: now)
            _ = engine.handle(.buildFailed(panda, reason: "not permitted"), now: now)
            #expect(engine.handle(.lockChanged(.unlocked), now: now) == [.build(panda)])
        }
        // The person may unlock the device before the provider fails.
        _ = engine.handle(.lockChanged(.lockedWithPasscode), now: .seconds(4))
        _ = engine.handle(.lockChanged(.unlocked), now: .seconds(4))
        #expect(
            engine.handle(.buildFailed(panda, reason: "not permitted"), now: .seconds(4)) == [
                .build(panda)
            ])
        #expect(engine.state.budgets[panda]?.dates.count == 1)
        // A build that fails for another reason spends as usual, and then nothing is left to spend.
        _ = engine.handle(.buildFailed(panda, reason: "no data"), now: .seconds(5))
        _ = engine.handle(.woke, now: .seconds(3_600))
        #expect(engine.records[.timeline(panda)]?.build == nil)
    }

    @Test func aDeviceThatStartsLockedBuildsNothingThatItCannotRead() {
        var engine = running(lock: .beforeFirstUnlock)
        let told = claims([panda, status], sequence: 11)
        #expect(
            engine.handle(.notification(attempt: 1, told), now: .zero) == [
                .saveBudgets, .build(status),
            ])
    }
}
