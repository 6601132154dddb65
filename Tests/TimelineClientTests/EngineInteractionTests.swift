import Foundation
import Testing
import WidgetModel

@testable import TimelineClient

/// An interaction is followed by one reload, and by none for its own change when that comes back.
@Suite struct EngineInteractionTests {
    private let panda = character("Power Panda")

    private func running() -> ReloadEngine {
        var engine = ReloadEngine(
            state: EngineState(
                registered: registration([panda]), position: cursor(10),
                positions: [.timeline(panda): .init(cursor: cursor(10), awaitsBuild: false)]),
            desired: registration([panda]), seed: 1)
        _ = engine.handle(.started(kept([panda])), now: .zero)
        _ = engine.handle(.opened(attempt: 1, resumedFrom: cursor(10)), now: .zero)
        return engine
    }

    private func told(
        _ engine: inout ReloadEngine, _ sequence: UInt64, all: Bool = false
    ) -> [EngineAction] {
        let claims =
            all ? claims(all: true, sequence: sequence) : claims([panda], sequence: sequence)
        return engine.handle(.notification(attempt: 1, claims), now: .zero)
    }

    private func finish(_ engine: inout ReloadEngine) -> [EngineAction] {
        engine.handle(.rebuilt(panda, milliseconds: 1, reloadDate: nil), now: .zero)
    }

    @Test func itsOwnChangeThatComesBackAfterTheReloadCostsNothing() {
        var engine = running()
        #expect(
            engine.handle(.interacted(panda, at: cursor(11)), now: .zero) == [.build(panda)])
        var done = Acknowledgement(cursor: cursor(11))
        done.rebuilt = [.init(widget: panda, milliseconds: 1)]
        #expect(finish(&engine) == [.save, .acknowledge(done)])
        _ = engine.handle(.acknowledged, now: .zero)
        // The change from the stream is acknowledged with a cursor that covers it.
        #expect(told(&engine, 11) == [.acknowledge(Acknowledgement(cursor: cursor(11)))])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero) == [])
        _ = engine.handle(.acknowledged, now: .zero)
        #expect(told(&engine, 12) == [.saveBudgets, .build(panda)], "another's change")
    }

    /// The gateway notifies of the change before the intent has returned.
    @Test func itsOwnChangeThatComesBackBeforeTheReloadIsServedByIt() {
        var engine = running()
        #expect(engine.handle(.interacting(panda), now: .zero) == [])
        #expect(told(&engine, 11) == [], "the intent asks for a reload when it returns")
        #expect(engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero) == [])
        #expect(
            engine.handle(.interacted(panda, at: cursor(11)), now: .zero) == [.build(panda)])
        var done = Acknowledgement(cursor: cursor(11))
        done.rebuilt = [.init(widget: panda, milliseconds: 1)]
        #expect(finish(&engine) == [.save, .acknowledge(done)])
    }

    @Test func anIntentThatDoesNotReturnHoldsNoReloadBackForLong() throws {
        var engine = running()
        _ = engine.handle(.interacting(panda), now: .zero)
        #expect(told(&engine, 11) == [])
        let wake = try #require(engine.nextWake)
        #expect(wake == engine.settings.interactionMax)
        #expect(engine.handle(.woke, now: wake) == [.saveBudgets, .build(panda)])
        #expect(engine.nextWake == nil, "a timer for what is over")
    }

    @Test func itsOwnChangeThatComesBackDuringTheReloadCostsNothing() {
        var engine = running()
        _ = engine.handle(.interacted(panda, at: cursor(11)), now: .zero)
        #expect(told(&engine, 11) == [])
        #expect(finish(&engine).contains(.save))
        #expect(engine.scheduler.nextDue == nil)
    }

    @Test func aReloadThatFailsLeavesTheChangeStale() {
        var engine = running()
        _ = engine.handle(.interacted(panda, at: cursor(11)), now: .zero)
        _ = told(&engine, 11)
        _ = engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero)
        _ = engine.handle(.buildFailed(panda, reason: "no"), now: .zero)
        #expect(engine.cursor == cursor(10), "a change was passed that is shown nowhere")
    }

    @Test func withoutACursorTheChangeIsReloadedForOnceMore() {
        var engine = running()
        _ = engine.handle(.interacted(panda, at: nil), now: .zero)
        _ = finish(&engine)
        #expect(told(&engine, 11) == [.saveBudgets, .build(panda)])
    }

    @Test func sequencesOfAnotherLogAreNotCompared() {
        var engine = running()
        _ = engine.handle(.interacted(panda, at: cursor(90, epoch: 2)), now: .zero)
        _ = finish(&engine)
        #expect(told(&engine, 11) == [.saveBudgets, .build(panda)])
        engine = running()
        _ = engine.handle(.interacted(panda, at: cursor(90)), now: .zero)
        _ = finish(&engine)
        // The gateway is restored from a backup, so there is another connection and another log.
        _ = engine.handle(.ended(attempt: 1, .closed), now: .zero)
        _ = engine.handle(.woke, now: .seconds(60))
        _ = engine.handle(.opened(attempt: 2, resumedFrom: cursor(90)), now: .seconds(60))
        _ = engine.handle(.idMoved(attempt: 2, cursor(41, epoch: 2)), now: .seconds(60))
        let orders = engine.handle(
            .notification(attempt: 2, claims([panda], sequence: 42)), now: .seconds(60))
        #expect(orders.contains(.build(panda)))
    }

    @Test func everythingIsEverything() {
        var engine = running()
        _ = engine.handle(.interacted(panda, at: cursor(50)), now: .zero)
        _ = finish(&engine)
        #expect(told(&engine, 40, all: true) == [.saveBudgets, .build(panda)])
    }

    @Test func aPersonGetsAReloadAlsoWhileTheGatewayHasForgottenTheClient() {
        var engine = running()
        _ = engine.handle(.ended(attempt: 1, .refused(.unknownClient)), now: .zero)
        #expect(
            engine.handle(.interacted(panda, at: nil), now: .zero) == [.build(panda)])
        _ = finish(&engine)
        let orders = engine.handle(.registered(cursor(20)), now: .zero)
        #expect(orders.contains(.build(panda)), "a forgotten client rebuilds all")
        #expect(engine.state.positions[.timeline(panda)]?.awaitsBuild == true)
    }

    /// Notifications of relevance and controls are separate from timelines, and no timeline covers
    /// them.
    @Test func aTimelineThatIsAheadSkipsNothingElseThatIsTold() {
        var engine = running()
        _ = engine.handle(.interacted(panda, at: cursor(50)), now: .zero)
        _ = finish(&engine)
        #expect(engine.state.positions[.timeline(panda)]?.cursor == cursor(50))
        #expect(engine.cursor == cursor(10))
        #expect(engine.state.cursor == cursor(10))
        _ = engine.handle(.ended(attempt: 1, .closed), now: .zero)
        #expect(
            engine.handle(.woke, now: .seconds(60)).contains(
                .connect(attempt: 2, since: cursor(10))))
    }
}
