import Foundation
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

/// An interaction is followed by one reload, and by none for its own change when that comes back.
@Suite struct EngineInteractionTests {
    private let panda = character("Power Panda")

    @Test func itsOwnChangeThatComesBackAfterTheReloadCostsNothing() {
        var engine = runningEngine([panda])
        #expect(engine.handle(.interacted(panda, at: cursor(11))) == [.build(panda)])
        #expect(engine.finish(panda) == [.save, acknowledge(cursor(11), rebuilt: [panda])])
        engine.handle(.acknowledged)
        // The change from the stream is acknowledged with a cursor that covers it.
        #expect(engine.hear(of: [panda], at: 11) == [acknowledge(cursor(11))])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(11))) == [])
        engine.handle(.acknowledged)
        #expect(engine.hear(of: [panda], at: 12) == [.saveBudgets, .build(panda)], "another's")
    }

    /// The gateway notifies of the change before the intent has returned.
    @Test func itsOwnChangeThatComesBackBeforeTheReloadIsServedByIt() {
        var engine = runningEngine([panda])
        #expect(engine.handle(.interacting(panda)) == [])
        #expect(
            engine.hear(of: [panda], at: 11) == [], "the intent asks for a reload when it returns")
        #expect(engine.handle(.idMoved(attempt: 1, cursor(11))) == [])
        #expect(engine.handle(.interacted(panda, at: cursor(11))) == [.build(panda)])
        #expect(engine.finish(panda) == [.save, acknowledge(cursor(11), rebuilt: [panda])])
    }

    @Test func itsOwnChangeThatComesBackDuringTheReloadCostsNothing() {
        var engine = runningEngine([panda])
        engine.handle(.interacted(panda, at: cursor(11)))
        #expect(engine.hear(of: [panda], at: 11) == [])
        #expect(engine.finish(panda).contains(.save))
        #expect(engine.scheduler.nextDue == nil)
    }

    @Test func anIntentThatDoesNotReturnHoldsNoReloadBackForLong() throws {
        var engine = runningEngine([panda])
        engine.handle(.interacting(panda))
        #expect(engine.hear(of: [panda], at: 11) == [])
        let wake = try #require(engine.nextWake)
        #expect(wake == engine.settings.interactionMax)
        #expect(engine.handle(.woke, now: wake) == [.saveBudgets, .build(panda)])
        #expect(engine.nextWake == nil, "a timer for what is over")
    }

    /// A sequence is compared only to one of the same log, and everything is everything.
    @Test(
        arguments: [
            (nil, 11, false), (cursor(90, epoch: 2), 11, false), (cursor(50), 40, true),
        ] as [(Cursor?, UInt64, Bool)])
    func whatTheReloadMayLackIsReloadedForOnceMore(
        reached: Cursor?, sequence: UInt64, isAll: Bool
    ) {
        var engine = runningEngine([panda])
        engine.handle(.interacted(panda, at: reached))
        engine.finish(panda)
        let told = claims([panda], all: isAll, sequence: sequence)
        #expect(
            engine.handle(.notification(attempt: 1, told)) == [.saveBudgets, .build(panda)])
    }

    /// The gateway is restored from a backup, so there is another connection and another log.
    @Test func sequencesOfAnotherLogAreNotCompared() {
        var engine = runningEngine([panda])
        engine.handle(.interacted(panda, at: cursor(90)))
        engine.finish(panda)
        engine.handle(.ended(attempt: 1, .closed))
        let now = Duration.seconds(60)
        engine.handle(.woke, now: now)
        engine.handle(.opened(attempt: 2, resumedFrom: cursor(90)), now: now)
        engine.handle(.idMoved(attempt: 2, cursor(41, epoch: 2)), now: now)
        #expect(engine.hear(of: [panda], at: 42, attempt: 2, now: now).contains(.build(panda)))
    }

    @Test func aPersonGetsAReloadAlsoWhileTheGatewayHasForgottenTheClient() {
        var engine = runningEngine([panda])
        engine.handle(.ended(attempt: 1, .refused(.unknownClient)))
        #expect(engine.handle(.interacted(panda, at: nil)) == [.build(panda)])
        engine.finish(panda)
        let orders = engine.handle(.registered(cursor(20)))
        #expect(orders.contains(.build(panda)), "a forgotten client rebuilds all")
        #expect(engine.state.positions[.timeline(panda)]?.awaitsBuild == true)
    }

    /// Notifications of relevance and controls are separate from timelines, and no timeline covers
    /// them.
    @Test func aTimelineThatIsAheadSkipsNothingElseThatIsTold() {
        var engine = runningEngine([panda])
        engine.handle(.interacted(panda, at: cursor(50)))
        engine.finish(panda)
        #expect(engine.state.positions[.timeline(panda)]?.cursor == cursor(50))
        #expect(engine.cursor == cursor(10))
        #expect(engine.state.cursor == cursor(10))
        engine.handle(.ended(attempt: 1, .closed))
        let again = EngineAction.connect(attempt: 2, since: cursor(10))
        #expect(engine.handle(.woke, now: .seconds(60)).contains(again))
    }
}

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

/// The engine's behavior when the gateway's current registration is not the one it assumes.
@Suite struct EngineMismatchTests {
    private let panda = character("Panda")
    private let other = EngineEvent.Rejection.otherRegistration(digest: "other")
    private var reconcile: EngineAction { .reconcile(registration([panda])) }

    private func connect(_ attempt: Int) -> EngineAction {
        .connect(attempt: attempt, since: cursor(10))
    }

    @Test func `a refused stream is asked for again once it has registered`() {
        var engine = runningEngine([panda])
        #expect(engine.handle(.ended(attempt: 1, .refused(other))) == [reconcile])
        #expect(engine.handle(.registered(nil, digest: "other")) == [.save, connect(2)])
        #expect(engine.state.digest == "other")
        // After a second refusal, it waits before it asks again.
        let third = EngineEvent.Rejection.otherRegistration(digest: "third")
        #expect(engine.handle(.ended(attempt: 2, .refused(third))) == [reconcile])
        #expect(engine.handle(.registered(cursor(10), digest: "fourth")) == [.save])
        #expect(engine.handle(.woke, now: .seconds(60)) == [connect(3)])
    }

    /// A restore or another process may have changed the registration between reading and patching
    /// it.
    @Test func `what a patch leaves in force is read before it is relied on`() {
        var engine = runningEngine([panda])
        engine.handle(.ended(attempt: 1, .refused(other)))
        #expect(engine.handle(.patched(cursor(11))) == [.save, reconcile])
        // The mismatch is not forgotten when the process ends here.
        #expect(engine.state.digest == "own")
        var next = ReloadEngine(
            state: engine.state, desired: registration([panda]), seed: 2)
        #expect(next.handle(.started([.init(widget: panda, reloadDate: nil)])) == [reconcile])
        #expect(engine.handle(.registered(nil, digest: "other")) == [.save, connect(2)])
        #expect(!engine.state.mustReadRegistration)
    }

    @Test func `a registration that lacks something each time is patched ever more rarely`() {
        var engine = runningEngine([panda])
        var orders = engine.handle(.ended(attempt: 1, .refused(other)))
        var patches = 0
        while orders.contains(reconcile) {
            patches += 1
            orders = engine.handle(.patched(cursor(11)))
        }
        #expect(patches == 4)
        #expect(engine.isAtRest)
        #expect(engine.handle(.woke, now: .seconds(60)) == [reconcile])
        #expect(engine.handle(.patched(cursor(12)), now: .seconds(60)) == [.save])
    }

    @Test func `a registration that could not be read is read later, and nothing asked before`() {
        var engine = runningEngine([panda])
        engine.handle(.ended(attempt: 1, .refused(other)))
        #expect(engine.handle(.registrationFailed(.temporary(retryAfter: nil))) == [])
        #expect(engine.isAtRest)
        #expect(engine.handle(.woke, now: .seconds(60)) == [reconcile])
    }

    @Test func `a client that is forgotten meanwhile registers whole`() {
        var engine = runningEngine([panda])
        engine.handle(.ended(attempt: 1, .refused(other)))
        let orders = engine.handle(.registrationFailed(.unknownClient))
        #expect(orders.contains(.register(registration([panda]))))
        #expect(engine.digest == nil && engine.registered == nil && engine.cursor == nil)
        #expect(engine.handle(.registered(cursor(20))).contains(.build(panda)))
    }

    @Test func `an acknowledgement that is refused is kept until it has registered`() {
        var engine = runningEngine([panda])
        engine.handle(.idMoved(attempt: 1, cursor(11)))
        // It names nothing that is shown here.
        #expect(engine.hear(of: [], at: 11) == [acknowledge(cursor(11))])
        #expect(engine.handle(.acknowledgementFailed(other)) == [reconcile])
        #expect(engine.handle(.registered(nil, digest: "other")) == [.save])
        #expect(engine.handle(.woke, now: .seconds(60)) == [acknowledge(cursor(11))])
    }

    /// A request sent before the gateway accepted a registration may be refused after it.
    @Test func `what names the digest that it has is no mismatch`() {
        var engine = runningEngine([panda])
        let own = EngineEvent.Rejection.otherRegistration(digest: "own")
        #expect(engine.handle(.ended(attempt: 1, .refused(own))) == [connect(2)])
    }
}

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
