import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

/// Tests for "Hide sensitive content": how protected files affect the timelines built from them.
@Suite struct EngineLockTests {
    private let panda = character("Power Panda")

    /// An engine that shows a widget with protected files and one without.
    private func running() -> ReloadEngine {
        runningEngine([panda, status]) {
            $0.protections = [panda.kind: .complete, status.kind: .none]
        }
    }

    @Test func whatIsToldWhileLockedIsBuiltAfterUnlockAndHoldsTheCursorBackAlone() {
        var engine = running()
        #expect(engine.handle(.lockChanged(.lockedWithPasscode)) == [])
        #expect(engine.hear(of: [panda, status], at: 11) == [.saveBudgets, .build(status)])
        engine.handle(.idMoved(attempt: 1, cursor(11)))
        #expect(
            engine.finish(status) == [.save, acknowledge(cursor(10), rebuilt: [status])],
            "what waits for the lock is settled, neither rebuilt nor failed")
        #expect(engine.nextWake == nil, "a timer for what only a person can end")
        #expect(engine.nextReload == nil)
        let now = Duration.seconds(9)
        #expect(engine.handle(.lockChanged(.unlocked), now: now) == [.saveBudgets, .build(panda)])
        engine.handle(.acknowledged, now: now)
        engine.finish(panda, now: now)
        #expect(engine.cursor == cursor(11))
    }

    @Test func aBuildThatTheLockOvertookIsNoFailure() {
        var engine = running()
        engine.hear(of: [panda], at: 11)
        engine.handle(.lockChanged(.lockedWithoutPasscode))
        let orders = engine.handle(.buildFailed(panda, reason: "not permitted"))
        #expect(orders == [], "the gateway is told of a failure")
        #expect(engine.nextWake == nil)
        #expect(
            engine.handle(.lockChanged(.unlocked)) == [.build(panda)],
            "it waits for a failure that was none, or spends again")
    }
}
