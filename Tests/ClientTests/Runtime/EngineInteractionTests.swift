import Testing
import WidgetModel

@testable import TimelineRuntime

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
