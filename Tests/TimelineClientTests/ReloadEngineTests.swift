import Testing
import WidgetModel

@testable import TimelineClient

@Suite struct ReloadEngineTests {
    let panda = character("Power Panda")
    let unipony = character("Unipony")

    /// Returns an engine that registered at sequence 10, built everything and holds a stream open.
    func running(
        _ widgets: [WidgetInfo], sets: [RecommendationSet] = [],
        settings: ReloadEngine.Settings = .init()
    ) -> ReloadEngine {
        var engine = ReloadEngine(
            state: EngineState(), desired: registration(widgets, sets: sets), settings: settings,
            seed: 1)
        var orders = engine.handle(.started([]), now: .zero)
        while !orders.isEmpty {
            let order = orders.removeFirst()
            switch order {
            case .register, .reconcile: orders += engine.handle(.registered(cursor(10)), now: .zero)
            case .build(let info):
                orders += engine.handle(
                    .rebuilt(info, milliseconds: 5, reloadDate: nil), now: .zero)
            case .recommend(let kind):
                let items = sets.first { $0.kind == kind }?.items ?? []
                orders += engine.handle(.recommended(kind: kind, items), now: .zero)
            case .connect(let attempt, let since):
                orders += engine.handle(
                    .opened(attempt: attempt, resumedFrom: since), now: .zero)
            case .acknowledge: orders += engine.handle(.acknowledged, now: .zero)
            case .save, .saveBudgets: break
            }
        }
        return engine
    }

    @Test func aNewClientRegistersThenBuildsAndSubscribesFromTheCursorItWasGiven() {
        var engine = ReloadEngine(
            state: EngineState(), desired: registration([panda, status]), seed: 1)
        #expect(
            engine.handle(.started([]), now: .zero) == [.register(registration([panda, status]))])
        #expect(
            engine.handle(.registered(cursor(10)), now: .zero) == [
                .save, .build(panda), .build(status), .connect(attempt: 1, since: cursor(10)),
            ])
        #expect(
            engine.handle(.rebuilt(panda, milliseconds: 3, reloadDate: nil), now: .zero) == [.save])
        var done = Acknowledgement(cursor: cursor(10))
        done.rebuilt = [
            .init(widget: panda, milliseconds: 3), .init(widget: status, milliseconds: 4),
        ]
        #expect(
            engine.handle(.rebuilt(status, milliseconds: 4, reloadDate: nil), now: .zero) == [
                .save, .acknowledge(done),
            ])
    }

    @Test func onlyWhatANotificationNamesIsRebuiltAndThenAcknowledgedWithItsId() {
        var engine = running([panda, unipony, status])
        #expect(
            engine.handle(.notification(attempt: 1, claims([unipony], sequence: 11)), now: .zero)
                == [.saveBudgets, .build(unipony)])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero) == [])
        #expect(engine.cursor == cursor(10), "the id was stored before the rebuild")
        var done = Acknowledgement(cursor: cursor(11))
        done.rebuilt = [.init(widget: unipony, milliseconds: 7)]
        #expect(
            engine.handle(.rebuilt(unipony, milliseconds: 7, reloadDate: nil), now: .zero) == [
                .save, .acknowledge(done),
            ])
        #expect(engine.cursor == cursor(11))
    }

    @Test func anIdThatComesAfterTheBuildIsAcknowledgedOnceMore() {
        var engine = running([panda, unipony])
        #expect(
            engine.handle(.notification(attempt: 1, claims([unipony], sequence: 11)), now: .zero)
                == [.saveBudgets, .build(unipony)])
        var done = Acknowledgement(cursor: cursor(10))
        done.rebuilt = [.init(widget: unipony, milliseconds: 7)]
        #expect(
            engine.handle(.rebuilt(unipony, milliseconds: 7, reloadDate: nil), now: .zero) == [
                .save, .acknowledge(done),
            ])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero) == [])
        #expect(
            engine.handle(.acknowledged, now: .zero) == [
                .acknowledge(Acknowledgement(cursor: cursor(11)))
            ])
    }

    @Test func aNotificationDuringABuildBuildsOnceMore() {
        var engine = running([panda])
        _ = engine.handle(.notification(attempt: 1, claims([panda], sequence: 11)), now: .zero)
        _ = engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero)
        #expect(
            engine.handle(.notification(attempt: 1, claims([panda], sequence: 12)), now: .zero)
                == [])
        _ = engine.handle(.idMoved(attempt: 1, cursor(12)), now: .zero)
        #expect(
            engine.handle(.rebuilt(panda, milliseconds: 1, reloadDate: nil), now: .zero) == [
                .save, .saveBudgets, .build(panda),
            ])
        #expect(engine.cursor == cursor(10), "what was known when that build started")
        _ = engine.handle(.rebuilt(panda, milliseconds: 1, reloadDate: nil), now: .zero)
        #expect(engine.cursor == cursor(12))
    }

    private func tell(
        _ widgets: [WidgetInfo], _ sequence: UInt64, to engine: inout ReloadEngine
    ) -> [EngineAction] {
        engine.handle(.notification(attempt: 1, claims(widgets, sequence: sequence)), now: .zero)
    }

    private func finish(_ widget: WidgetInfo, in engine: inout ReloadEngine) -> [EngineAction] {
        engine.handle(.rebuilt(widget, milliseconds: 1, reloadDate: nil), now: .zero)
    }

    /// Two rules of a kind, or two values of a list, notify of one change each: at once, or at the
    /// end of their windows, during which the id does not move.
    @Test(arguments: [false, true])
    func aChangeThatIsToldTwiceIsBuiltOnce(isBuiltBetween: Bool) {
        var engine = running([panda])
        #expect(tell([panda], 12, to: &engine) == [.saveBudgets, .build(panda)])
        // The latest change is notified first.
        if !isBuiltBetween { #expect(tell([panda], 11, to: &engine) == []) }
        var done = Acknowledgement(cursor: cursor(10))
        done.rebuilt = [.init(widget: panda, milliseconds: 1)]
        #expect(finish(panda, in: &engine) == [.save, .acknowledge(done)])
        _ = engine.handle(.acknowledged, now: .zero)
        if isBuiltBetween {
            #expect(tell([panda], 11, to: &engine) == [])
            #expect(tell([panda], 12, to: &engine) == [])
        }
        #expect(
            engine.handle(.idMoved(attempt: 1, cursor(12)), now: .zero) == [
                .acknowledge(Acknowledgement(cursor: cursor(12)))
            ])
        #expect(tell([panda], 13, to: &engine) == [.saveBudgets, .build(panda)])
    }

    @Test func onlyABuildThatBeganAfterAChangeWasHeardOfIncludesIt() {
        var engine = running([panda, unipony])
        _ = tell([panda], 11, to: &engine)
        #expect(tell([unipony], 12, to: &engine) == [.saveBudgets, .build(unipony)])
        #expect(tell([panda], 12, to: &engine) == [], "it is built already")
        #expect(finish(panda, in: &engine) == [.save, .saveBudgets, .build(panda)])
        #expect(tell([panda], 12, to: &engine) == [])
        _ = engine.handle(.idMoved(attempt: 1, cursor(12)), now: .zero)
        _ = engine.handle(.buildFailed(panda, reason: "no network"), now: .zero)
        #expect(engine.records[.timeline(panda)]?.isStale == true)
        #expect(engine.cursor == cursor(10), "a change was passed that is shown nowhere")
    }

    /// The log of another connection may have lost its end, so that 11 is another change there.
    @Test func whatAnotherConnectionHeardIsNotCompared() {
        var engine = running([panda])
        _ = tell([panda], 11, to: &engine)
        _ = finish(panda, in: &engine)
        _ = engine.handle(.acknowledged, now: .zero)
        _ = tell([status], 20, to: &engine)
        _ = engine.handle(.reloadRequested(.all, .app), now: .zero)
        _ = engine.handle(.ended(attempt: 1, .closed), now: .zero)
        _ = engine.handle(.woke, now: .seconds(60))
        // A build that began before the connection ended counts no more than a finished one.
        _ = engine.handle(.opened(attempt: 2, resumedFrom: cursor(10)), now: .seconds(60))
        _ = engine.handle(
            .notification(attempt: 2, claims([panda], sequence: 11)), now: .seconds(60))
        let orders = engine.handle(
            .rebuilt(panda, milliseconds: 1, reloadDate: nil), now: .seconds(60))
        #expect(orders.contains(.build(panda)))
    }

    @Test func aCursorNeverPassesANotificationThatDoesNotVerify() throws {
        var engine = running([panda])
        #expect(engine.handle(.verificationFailed(attempt: 1), now: .zero) == [])
        #expect(!engine.isCurrent(attempt: 1))
        #expect(engine.handle(.idMoved(attempt: 1, cursor(20)), now: .zero) == [])
        #expect(engine.handle(.ended(attempt: 1, .closed), now: .zero) == [])
        let wake = try #require(engine.nextWake)
        #expect(
            engine.handle(.woke, now: wake) == [.connect(attempt: 2, since: cursor(10))])
    }

    @Test func verificationThatKeepsFailingIsAskedForLessAndLessOften() throws {
        var engine = running([panda])
        var longest = Duration.zero
        var now = Duration.zero
        for attempt in 1...40 {
            // Ids before the failing notification must not reset the wait.
            _ = engine.handle(.idMoved(attempt: attempt, cursor(10)), now: now)
            _ = engine.handle(.verificationFailed(attempt: attempt), now: now)
            let wake = try #require(engine.nextWake)
            longest = max(longest, wake - now)
            now = wake
            _ = engine.handle(.woke, now: now)
        }
        #expect(longest > .seconds(20))
        #expect(longest <= .seconds(60))
    }

    @Test func aHeartbeatMovesTheCursorOfWhatIsFresh() {
        var engine = running([panda, status])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(50)), now: .zero) == [])
        #expect(engine.cursor == cursor(50))
    }

    @Test func idsAloneAreSavedOnlyNowAndThen() {
        var engine = running([panda])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(50)), now: .seconds(15)) == [])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(51)), now: .seconds(301)) == [.save])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(52)), now: .seconds(316)) == [])
    }

    @Test func aForgottenClientRegistersAndRebuildsAll() {
        var engine = running([panda, status])
        let orders = engine.handle(.ended(attempt: 1, .refused(.unknownClient)), now: .zero)
        #expect(orders == [.save, .register(registration([panda, status]))])
        #expect(engine.cursor == nil)
        let after = engine.handle(.registered(cursor(3, epoch: 2)), now: .zero)
        #expect(after == [.save, .saveBudgets, .build(panda), .build(status)])
        #expect(!engine.state.positions.values.contains { !$0.awaitsBuild })
    }

    @Test func aPatchOfAForgottenRegistrationRegistersTheWhole() {
        var engine = running([panda])
        let both = registration([panda, unipony])
        _ = engine.handle(.configurationChanged(both), now: .zero)
        #expect(
            engine.handle(.registrationFailed(.unknownClient), now: .zero) == [
                .save, .register(both),
            ])
        #expect(engine.registered == nil)
        let orders = engine.handle(.registered(cursor(20)), now: .zero)
        #expect(orders.contains(.build(panda)) && orders.contains(.build(unipony)))
    }

    @Test func aChangedConfigurationIsRegisteredAndOnlyTheNewWidgetBuilt() {
        var engine = running([panda])
        _ = engine.handle(.idMoved(attempt: 1, cursor(30)), now: .zero)
        let both = registration([panda, unipony])
        #expect(engine.handle(.configurationChanged(both), now: .zero) == [.register(both)])
        #expect(
            engine.handle(.registered(cursor(40)), now: .zero) == [.save, .build(unipony)])
        #expect(engine.cursor == cursor(30), "registering again moved the others' cursor")
        _ = engine.handle(.rebuilt(unipony, milliseconds: 1, reloadDate: nil), now: .zero)
        #expect(engine.state.positions[.timeline(unipony)]?.cursor == cursor(40))
        #expect(engine.cursor == cursor(30))
    }

    @Test func aWidgetPlacedAgainDuringItsBuildIsBuiltAnew() {
        var engine = running([panda, status])
        _ = engine.handle(.notification(attempt: 1, claims([panda])), now: .zero)
        _ = engine.handle(.configurationChanged(registration([status])), now: .zero)
        _ = engine.handle(.registered(cursor(20)), now: .zero)
        _ = engine.handle(.configurationChanged(registration([panda, status])), now: .zero)
        _ = engine.handle(.registered(cursor(30)), now: .zero)
        let orders = engine.handle(.rebuilt(panda, milliseconds: 1, reloadDate: nil), now: .zero)
        #expect(
            orders == [.save, .saveBudgets, .build(panda)],
            "a build from before counted for the new one")
    }

    @Test func aRecommendationSetThatChangedIsRegisteredWithItsCursor() {
        let old = recommended(panda.kind, ["Power Panda"])
        let new = recommended(panda.kind, ["Power Panda", "Unipony"])
        var engine = running([panda], sets: [old])
        _ = engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero)
        #expect(
            engine.handle(.notification(attempt: 1, claims(sets: [panda.kind])), now: .zero)
                == [.recommend(kind: panda.kind)])
        let orders = engine.handle(.recommended(kind: panda.kind, new.items), now: .zero)
        var document = registration([panda], sets: [new])
        document.recommendations[0].builtAt = cursor(11).text
        #expect(orders.contains(.register(document)))
        let told = orders.contains {
            if case .acknowledge(let told) = $0 { !told.recommendations.isEmpty } else { false }
        }
        #expect(!told, "a set that is not registered yet was acknowledged")
    }

    /// The gateway does not notify of a set before it is registered, so the set is as old as its
    /// build.
    @Test func aSetIsRegisteredWithTheCursorItWasBuiltAtHoweverLateThatIs() throws {
        let set = recommended(panda.kind, ["Power Panda"])
        var engine = ReloadEngine(
            state: EngineState(), desired: registration([]), unasked: [panda.kind], seed: 1)
        #expect(engine.handle(.started([]), now: .zero) == [.register(registration([]))])
        #expect(
            engine.handle(.registered(cursor(10)), now: .zero) == [
                .save, .recommend(kind: panda.kind), .connect(attempt: 1, since: cursor(10)),
            ])
        _ = engine.handle(.opened(attempt: 1, resumedFrom: cursor(10)), now: .zero)
        _ = engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero)
        var document = registration([], sets: [set])
        document.recommendations[0].builtAt = cursor(10).text
        let orders = engine.handle(.recommended(kind: panda.kind, set.items), now: .zero)
        #expect(orders.contains(.register(document)))
        _ = engine.handle(.idMoved(attempt: 1, cursor(12)), now: .zero)
        _ = engine.handle(.registrationFailed(.temporary(retryAfter: nil)), now: .zero)
        let wake = try #require(engine.nextWake)
        #expect(engine.handle(.woke, now: wake) == [.register(document)])
        #expect(engine.cursor == cursor(10))
        _ = engine.handle(.registered(cursor(13)), now: wake)
        _ = engine.handle(.idMoved(attempt: 1, cursor(13)), now: wake)
        #expect(engine.cursor == cursor(13))
    }

    /// Changes from before the registration are notified after it.
    @Test func aSetThatIsRegisteredWhileItIsBuiltAgainClaimsNothingThatWasNotTold() {
        let set = recommended(panda.kind, ["Power Panda"])
        let item = Archived.recommendations(kind: panda.kind)
        var engine = ReloadEngine(
            state: EngineState(), desired: registration([]), unasked: [panda.kind], seed: 1)
        _ = engine.handle(.started([]), now: .zero)
        _ = engine.handle(.registered(cursor(10)), now: .zero)
        _ = engine.handle(.opened(attempt: 1, resumedFrom: cursor(10)), now: .zero)
        _ = engine.handle(.recommended(kind: panda.kind, set.items), now: .zero)
        #expect(
            engine.handle(.recommendationsInvalidated, now: .zero)
                == [.recommend(kind: panda.kind)])
        // This is the id of a change to the set that was never notified.
        _ = engine.handle(.idMoved(attempt: 1, cursor(12)), now: .zero)
        _ = engine.handle(.registered(cursor(13)), now: .zero)
        _ = engine.handle(.recommended(kind: panda.kind, set.items), now: .zero)
        #expect(engine.state.positions[item]?.cursor == cursor(10))
        // Now the client is notified of that change, and later of all others.
        _ = engine.handle(.idMoved(attempt: 1, cursor(14)), now: .zero)
        #expect(engine.state.positions[item]?.cursor == cursor(14))
    }

    @Test func aRecommendationSetThatDidNotChangeIsAcknowledged() {
        let set = recommended(panda.kind, ["Power Panda"])
        var engine = running([panda], sets: [set])
        _ = engine.handle(
            .notification(attempt: 1, claims(sets: [panda.kind], sequence: 12)), now: .zero)
        _ = engine.handle(.idMoved(attempt: 1, cursor(12)), now: .zero)
        var done = Acknowledgement(cursor: cursor(12))
        done.recommendations = [panda.kind]
        #expect(
            engine.handle(.recommended(kind: panda.kind, set.items), now: .zero) == [
                .save, .acknowledge(done),
            ])
    }

    @Test func aSetThatFailsStaysAsItIsIsAskedForAgainAndHoldsTheCursorBack() throws {
        let set = recommended(panda.kind, ["Power Panda"])
        var engine = running([panda], sets: [set])
        _ = engine.handle(
            .notification(attempt: 1, claims(sets: [panda.kind], sequence: 11)), now: .zero)
        _ = engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero)
        #expect(engine.handle(.recommendFailed(kind: panda.kind), now: .zero) == [])
        #expect(engine.cursor == cursor(10) && engine.desired.recommendations == [set])
        let wake = try #require(engine.nextWake)
        #expect(engine.handle(.woke, now: wake - .milliseconds(1)) == [])
        #expect(engine.handle(.woke, now: wake) == [.recommend(kind: panda.kind)])
        // The wait grows with each failure, but the app may know better.
        #expect(engine.handle(.recommendFailed(kind: panda.kind), now: wake) == [])
        #expect(try #require(engine.nextWake) > wake)
        #expect(
            engine.handle(.recommendationsInvalidated, now: wake) == [.recommend(kind: panda.kind)])
    }

    @Test func aProviderThatFailsIsAskedAgainAndHoldsTheCursorBack() throws {
        var engine = running([panda, status])
        _ = engine.handle(.notification(attempt: 1, claims([panda], sequence: 11)), now: .zero)
        _ = engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero)
        let orders = engine.handle(.buildFailed(panda, reason: "no network"), now: .zero)
        var done = Acknowledgement(cursor: cursor(10))
        done.failed = [.init(widget: panda, reason: "no network")]
        #expect(orders == [.acknowledge(done)])
        let wake = try #require(engine.nextWake)
        #expect(engine.handle(.acknowledged, now: .zero) == [])
        #expect(engine.handle(.woke, now: wake) == [.saveBudgets, .build(panda)])
    }

    @Test func anAcknowledgementFollowsTheIdThatCoversWhatWasTold() {
        var engine = running([panda])
        // When several frames have one sequence, only the last carries the id.
        _ = engine.handle(.notification(attempt: 1, claims([status], sequence: 11)), now: .zero)
        #expect(
            engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero) == [
                .acknowledge(Acknowledgement(cursor: cursor(11)))
            ])
    }

    @Test func whatAnAcknowledgementCarriedIsToldAgainWhenItWasNotTaken() throws {
        var engine = running([panda])
        _ = engine.handle(.notification(attempt: 1, claims([panda], sequence: 11)), now: .zero)
        let sent = engine.handle(.rebuilt(panda, milliseconds: 9, reloadDate: nil), now: .zero)
        #expect(sent.count == 2)
        let none = engine.handle(
            .acknowledgementFailed(.temporary(retryAfter: .seconds(3))), now: .zero)
        #expect(none == [])
        let wake = try #require(engine.nextWake)
        #expect(wake >= .seconds(3))
        #expect(engine.handle(.woke, now: wake) == [sent[1]])
    }

    @Test func aGatewayThatLostItsTailIsBelievedInItsNewEpoch() {
        var engine = running([panda])
        _ = engine.handle(.idMoved(attempt: 1, cursor(90, epoch: 4, nonce: 1)), now: .zero)
        _ = engine.handle(.ended(attempt: 1, .closed), now: .zero)
        _ = engine.handle(.woke, now: .seconds(60))
        // The gateway was restored from a time before epoch 4, and then opened an epoch 4 of its
        // own.
        let resumed = cursor(40, epoch: 4, nonce: 2)
        let orders = engine.handle(
            .opened(attempt: 2, resumedFrom: resumed), now: .seconds(60))
        #expect(orders == [.save, .saveBudgets, .build(panda)])
        #expect(
            engine.state.positions[.timeline(panda)] == .init(cursor: resumed, awaitsBuild: true))
        _ = engine.handle(.rebuilt(panda, milliseconds: 1, reloadDate: nil), now: .seconds(60))
        _ = engine.handle(
            .notification(attempt: 2, claims(all: true, sequence: 40)), now: .seconds(60))
        _ = engine.handle(.idMoved(attempt: 2, resumed), now: .seconds(60))
        _ = engine.handle(.rebuilt(panda, milliseconds: 1, reloadDate: nil), now: .seconds(60))
        #expect(
            engine.state.positions[.timeline(panda)] == .init(cursor: resumed, awaitsBuild: false))
    }

    @Test func aBuildFromBeforeALogWasLostClaimsNothingOfTheNext() throws {
        var engine = running([panda])
        _ = engine.handle(.notification(attempt: 1, claims([panda], sequence: 11)), now: .zero)
        _ = engine.handle(.idMoved(attempt: 1, cursor(101, epoch: 2, nonce: 1)), now: .zero)
        _ = engine.handle(.buildFailed(panda, reason: "no network"), now: .zero)
        let wake = try #require(engine.nextWake)
        #expect(engine.handle(.woke, now: wake).contains(.build(panda)))
        // The gateway was restored from a time before its second epoch, and is now in another
        // second one.
        _ = engine.handle(.configurationChanged(registration([panda, status])), now: wake)
        _ = engine.handle(.registered(cursor(105, epoch: 2, nonce: 2)), now: wake)
        _ = engine.handle(.rebuilt(panda, milliseconds: 1, reloadDate: nil), now: wake)
        #expect(
            engine.state.positions[.timeline(panda)]
                == .init(cursor: cursor(10), awaitsBuild: false))
        #expect(engine.cursor == cursor(10))
    }

    @Test func aRestartResumesWithoutRegisteringOrBuildingAgain() {
        let before = running([panda, status])
        var engine = ReloadEngine(
            state: before.state, desired: registration([panda, status]), seed: 2)
        #expect(
            engine.handle(.started(kept([panda, status])), now: .zero) == [
                .connect(attempt: 1, since: cursor(10))
            ])
    }

    @Test func aRestartBuildsWhatWasRegisteredButNotBuilt() {
        var before = ReloadEngine(
            state: EngineState(), desired: registration([panda, status]), seed: 1)
        _ = before.handle(.started([]), now: .zero)
        _ = before.handle(.registered(cursor(10)), now: .zero)
        _ = before.handle(.rebuilt(panda, milliseconds: 1, reloadDate: nil), now: .zero)
        var engine = ReloadEngine(
            state: before.state, desired: registration([panda, status]), seed: 2)
        #expect(
            engine.handle(.started(kept([panda])), now: .zero) == [
                .build(status), .connect(attempt: 1, since: cursor(10)),
            ])
    }

    @Test func retriesSpreadOverTheServersHintAndHonourRetryAfter() throws {
        var engine = running([panda])
        _ = engine.handle(.retryHint(.seconds(8)), now: .zero)
        _ = engine.handle(.ended(attempt: 1, .closed), now: .zero)
        var waits: Set<Int64> = []
        for seed in UInt64(1)...20 {
            var other = engine
            other.generator = SplitMix64(seed: seed)
            let wake = try #require(other.nextWake)
            _ = other.handle(.woke, now: wake)
            _ = other.handle(
                .ended(attempt: 2, .refused(.temporary(retryAfter: .seconds(30)))), now: wake)
            let next = try #require(other.nextWake)
            #expect(next - wake >= .seconds(30))
            waits.insert((next - wake).components.seconds)
        }
        #expect(waits.count > 5, "clients that were refused together come back together")
    }

    @Test func noMoreProvidersAreAskedAtOnceThanAllowed() {
        let many = (1...10).map { character("C\($0)") }
        var engine = ReloadEngine(state: EngineState(), desired: registration(many), seed: 1)
        _ = engine.handle(.started([]), now: .zero)
        let first = engine.handle(.registered(cursor(1)), now: .zero)
        #expect(first.count { if case .build = $0 { true } else { false } } == 4)
        let next = engine.handle(.rebuilt(many[0], milliseconds: 1, reloadDate: nil), now: .zero)
        #expect(next == [.save, .build(many[4])])
    }

    @Test func whatTheAppAsksForIsRebuiltWithoutMovingTheCursor() {
        var engine = running([panda, unipony, status])
        #expect(
            engine.handle(.reloadRequested(.kind(panda.kind), .app), now: .zero) == [
                .saveBudgets, .build(panda), .build(unipony),
            ])
        #expect(engine.cursor == cursor(10))
    }

    @Test func aCursorThatMovedWhileAStreamWasOpenedIsNotTakenForTheOneAskedWith() {
        var engine = running([panda])
        _ = engine.handle(.notification(attempt: 1, claims([panda], sequence: 11)), now: .zero)
        _ = engine.handle(.idMoved(attempt: 1, cursor(11, epoch: 2)), now: .zero)
        _ = engine.handle(.ended(attempt: 1, .closed), now: .zero)
        _ = engine.handle(.woke, now: .seconds(60))
        _ = engine.handle(.rebuilt(panda, milliseconds: 1, reloadDate: nil), now: .seconds(60))
        #expect(engine.cursor == cursor(11, epoch: 2))
        let orders = engine.handle(
            .opened(attempt: 2, resumedFrom: cursor(10)), now: .seconds(60))
        #expect(orders == [], "resumed as asked, and everything was built again all the same")
    }

    @Test func nothingWakesForAMomentThatHasPassed() {
        var engine = running([panda])
        _ = engine.handle(.ended(attempt: 1, .refused(.unknownClient)), now: .zero)
        _ = engine.handle(.registrationFailed(.permanent), now: .zero)
        var now = Duration.zero
        for _ in 0..<20 {
            guard let wake = engine.nextWake else { break }
            #expect(wake > now, "a timer for the past spins")
            now = wake
            if !engine.handle(.woke, now: now).isEmpty {
                _ = engine.handle(.registrationFailed(.permanent), now: now)
            }
        }
        #expect(now > .seconds(60))
    }
}
