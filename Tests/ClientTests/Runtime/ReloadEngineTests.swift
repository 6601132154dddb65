import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

@Suite struct ReloadEngineTests {
    private let panda = character("Power Panda")
    private let unipony = character("Unipony")

    // MARK: Everything at once

    @Test(arguments: 0..<12)
    func nothingIsMissedClaimedTooEarlyOrBuiltUnasked(block: UInt64) {
        var worlds: [EngineFixture] = []
        for seed in (block * 10)..<(block * 10 + 10) {
            var world = EngineFixture(seed: seed)
            for _ in 0..<250 { world.step() }
            world.settle()
            #expect(world.violations.isEmpty, "seed \(seed): \(world.violations.first ?? "")")
            let accounts = world.accounts
            #expect(accounts.violations.isEmpty, "seed \(seed): \(accounts.violations.first ?? "")")
            #expect(world.outdated.isEmpty, "seed \(seed)")
            #expect(world.engine.isSettled, "seed \(seed)")
            worlds.append(world)
        }
        // A world without events would prove nothing.
        #expect(worlds.map(\.builds).reduce(0, +) > 200)
        #expect(worlds.map(\.restarts).reduce(0, +) > 10)
        #expect(worlds.map(\.accounts.counted).reduce(0, +) > 100)
        #expect(worlds.contains { $0.accounts.withheld > 0 })
        #expect(worlds.contains { $0.spared > 0 })
        #expect(worlds.contains { $0.accounts.resumed > 0 })
        #expect(worlds.contains { $0.cardsTold > 0 })
    }

    @Test func equalEventsGiveEqualOrders() {
        var one = EngineFixture(seed: 7)
        var other = EngineFixture(seed: 7)
        for _ in 0..<300 {
            one.step()
            other.step()
            #expect(one.engine.scheduler == other.engine.scheduler)
        }
        #expect(one.engine.state == other.engine.state)
        #expect(one.pending == other.pending)
    }

    // MARK: Builds and acknowledgements

    @Test func aNewClientRegistersThenBuildsAndSubscribesFromTheCursorItWasGiven() {
        var engine = ReloadEngine(
            state: EngineState(), desired: registration([panda, status]), seed: 1)
        #expect(engine.handle(.started([])) == [.register(registration([panda, status]))])
        // A first timeline spends nothing of the budget.
        #expect(
            engine.handle(.registered(cursor(10))) == [
                .save, .build(panda), .build(status), .connect(attempt: 1, since: cursor(10)),
            ])
        #expect(engine.finish(panda) == [.save])
        let done = acknowledge(cursor(10), rebuilt: [panda, status])
        #expect(engine.finish(status) == [.save, done])
    }

    @Test func anIdThatComesAfterTheBuildIsAcknowledgedOnceMore() {
        var engine = runningEngine([panda, unipony])
        #expect(engine.hear(of: [unipony], at: 11) == [.saveBudgets, .build(unipony)])
        #expect(engine.finish(unipony) == [.save, acknowledge(cursor(10), rebuilt: [unipony])])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(11))) == [])
        #expect(engine.handle(.acknowledged) == [acknowledge(cursor(11))])
    }

    /// Two rules of a kind, or two values of a list, notify of one change each: at once, or at the
    /// end of their windows, during which the id does not move.
    @Test(arguments: [false, true])
    func aChangeThatIsToldTwiceIsBuiltOnce(isBuiltBetween: Bool) {
        var engine = runningEngine([panda])
        #expect(engine.hear(of: [panda], at: 12) == [.saveBudgets, .build(panda)])
        // The latest change is notified first.
        if !isBuiltBetween { #expect(engine.hear(of: [panda], at: 11) == []) }
        #expect(engine.finish(panda) == [.save, acknowledge(cursor(10), rebuilt: [panda])])
        engine.handle(.acknowledged)
        if isBuiltBetween {
            #expect(engine.hear(of: [panda], at: 11) == [])
            #expect(engine.hear(of: [panda], at: 12) == [])
        }
        #expect(engine.handle(.idMoved(attempt: 1, cursor(12))) == [acknowledge(cursor(12))])
        #expect(engine.hear(of: [panda], at: 13) == [.saveBudgets, .build(panda)])
    }

    /// The log of another connection may have lost its end, so that 11 is another change there.
    @Test func whatAnotherConnectionHeardIsNotCompared() {
        var engine = runningEngine([panda])
        engine.hear(of: [panda], at: 11)
        engine.finish(panda)
        engine.handle(.acknowledged)
        engine.hear(of: [status], at: 20)
        engine.handle(.reloadRequested(.all, .app))
        engine.handle(.ended(attempt: 1, .closed))
        let now = Duration.seconds(60)
        engine.handle(.woke, now: now)
        // A build that began before the connection ended counts no more than a finished one.
        engine.handle(.opened(attempt: 2, resumedFrom: cursor(10)), now: now)
        engine.hear(of: [panda], at: 11, attempt: 2, now: now)
        #expect(engine.finish(panda, now: now).contains(.build(panda)))
    }

    @Test func aProviderThatFailsIsAskedAgainAndHoldsTheCursorBack() throws {
        var engine = runningEngine([panda, status])
        engine.hear(of: [panda], at: 11)
        engine.handle(.idMoved(attempt: 1, cursor(11)))
        var done = Acknowledgement(cursor: cursor(10))
        done.failed = [.init(widget: panda, reason: "no network")]
        #expect(
            engine.handle(.buildFailed(panda, reason: "no network")) == [.acknowledge(done)])
        let wake = try #require(engine.nextWake)
        #expect(engine.handle(.acknowledged) == [])
        #expect(engine.handle(.woke, now: wake) == [.saveBudgets, .build(panda)])
    }

    @Test func whatAnAcknowledgementCarriedIsToldAgainWhenItWasNotTaken() throws {
        var engine = runningEngine([panda])
        engine.hear(of: [panda], at: 11)
        let done = acknowledge(cursor(10), rebuilt: [panda])
        #expect(engine.finish(panda) == [.save, done])
        let refusal = EngineEvent.Rejection.temporary(retryAfter: .seconds(3))
        #expect(engine.handle(.acknowledgementFailed(refusal)) == [])
        let wake = try #require(engine.nextWake)
        #expect(wake >= .seconds(3))
        #expect(engine.handle(.woke, now: wake) == [done])
    }

    @Test func noMoreProvidersAreAskedAtOnceThanAllowed() {
        let many = (1...10).map { character("C\($0)") }
        var engine = ReloadEngine(state: EngineState(), desired: registration(many), seed: 1)
        engine.handle(.started([]))
        let first = engine.handle(.registered(cursor(1)))
        #expect(first.count { if case .build = $0 { true } else { false } } == 4)
        #expect(engine.finish(many[0]) == [.save, .build(many[4])])
    }

    @Test func whatTheAppAsksForIsRebuiltWithoutMovingTheCursor() {
        var engine = runningEngine([panda, unipony, status])
        #expect(
            engine.handle(.reloadRequested(.kind(panda.kind), .app)) == [
                .saveBudgets, .build(panda), .build(unipony),
            ])
        #expect(engine.cursor == cursor(10))
    }

    // MARK: Recommendation sets

    /// A set that changed is acknowledged by its registration, with the cursor of its build.
    @Test(arguments: [["Power Panda"], ["Power Panda", "Unipony"], []])
    func aSetThatIsReadAgainIsAcknowledgedOrRegistered(names: [String]) {
        let old = recommended(panda.kind, ["Power Panda"])
        let new = recommended(panda.kind, names)
        var engine = runningEngine([panda], sets: [old])
        engine.handle(.idMoved(attempt: 1, cursor(11)))
        let told = claims(sets: [panda.kind], sequence: 12)
        #expect(
            engine.handle(.notification(attempt: 1, told)) == [.recommend(kind: panda.kind)])
        var document = registration([panda], sets: [new])
        document.recommendations[0].builtAt = cursor(11).text
        var done = Acknowledgement(cursor: cursor(11))
        done.recommendations = [panda.kind]
        let order = new == old ? EngineAction.acknowledge(done) : .register(document)
        #expect(engine.handle(.recommended(kind: panda.kind, new.items)) == [.save, order])
    }

    /// The gateway does not notify of a set before it is registered, so the set is as old as its
    /// build.
    @Test func aSetIsRegisteredWithTheCursorItWasBuiltAtHoweverLateThatIs() throws {
        let set = recommended(panda.kind, ["Power Panda"])
        var engine = ReloadEngine(
            state: EngineState(), desired: registration([]), unasked: [panda.kind], seed: 1)
        #expect(engine.handle(.started([])) == [.register(registration([]))])
        #expect(
            engine.handle(.registered(cursor(10))) == [
                .save, .recommend(kind: panda.kind), .connect(attempt: 1, since: cursor(10)),
            ])
        engine.handle(.opened(attempt: 1, resumedFrom: cursor(10)))
        engine.handle(.idMoved(attempt: 1, cursor(11)))
        var document = registration([], sets: [set])
        document.recommendations[0].builtAt = cursor(10).text
        #expect(
            engine.handle(.recommended(kind: panda.kind, set.items)) == [
                .save, .register(document),
            ])
        engine.handle(.idMoved(attempt: 1, cursor(12)))
        engine.handle(.registrationFailed(.temporary(retryAfter: nil)))
        let wake = try #require(engine.nextWake)
        #expect(engine.handle(.woke, now: wake) == [.register(document)])
        #expect(engine.cursor == cursor(10))
        #expect(engine.handle(.registered(cursor(13)), now: wake) == [.save], "it is asked again")
        #expect(engine.handle(.idMoved(attempt: 1, cursor(13)), now: wake) == [])
        #expect(engine.cursor == cursor(13))
    }

    /// Changes from before the registration are notified after it.
    @Test func aSetThatIsRegisteredWhileItIsBuiltAgainClaimsNothingThatWasNotTold() {
        let set = recommended(panda.kind, ["Power Panda"])
        let item = EngineItem.recommendations(kind: panda.kind)
        var engine = ReloadEngine(
            state: EngineState(), desired: registration([]), unasked: [panda.kind], seed: 1)
        engine.handle(.started([]))
        engine.handle(.registered(cursor(10)))
        engine.handle(.opened(attempt: 1, resumedFrom: cursor(10)))
        engine.handle(.recommended(kind: panda.kind, set.items))
        #expect(engine.handle(.recommendationsInvalidated) == [.recommend(kind: panda.kind)])
        // This is the id of a change to the set that was never notified.
        engine.handle(.idMoved(attempt: 1, cursor(12)))
        engine.handle(.registered(cursor(13)))
        engine.handle(.recommended(kind: panda.kind, set.items))
        #expect(engine.state.positions[item]?.cursor == cursor(10))
        // Now the client is notified of that change, and later of all others.
        engine.handle(.idMoved(attempt: 1, cursor(14)))
        #expect(engine.state.positions[item]?.cursor == cursor(14))
    }

    @Test func aSetThatFailsStaysAsItIsIsAskedForAgainAndHoldsTheCursorBack() throws {
        let set = recommended(panda.kind, ["Power Panda"])
        var engine = runningEngine([panda], sets: [set])
        engine.handle(.notification(attempt: 1, claims(sets: [panda.kind], sequence: 11)))
        engine.handle(.idMoved(attempt: 1, cursor(11)))
        #expect(engine.handle(.recommendFailed(kind: panda.kind)) == [])
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

    // MARK: Connections and logs

    /// Ids before the notification do not reset the wait, and ids after it are not read.
    @Test func aNotificationThatDoesNotVerifyIsNeverPassedAndAskedForLessAndLessOften() throws {
        var engine = runningEngine([panda])
        var longest = Duration.zero
        var now = Duration.zero
        for attempt in 1...40 {
            engine.handle(.idMoved(attempt: attempt, cursor(10)), now: now)
            #expect(engine.handle(.verificationFailed(attempt: attempt), now: now) == [])
            #expect(!engine.isCurrent(attempt: attempt))
            #expect(engine.handle(.idMoved(attempt: attempt, cursor(20)), now: now) == [])
            let wake = try #require(engine.nextWake)
            longest = max(longest, wake - now)
            now = wake
            let again = EngineAction.connect(attempt: attempt + 1, since: cursor(10))
            #expect(engine.handle(.woke, now: now) == [again])
        }
        #expect(longest > .seconds(20))
        #expect(longest <= .seconds(60))
    }

    @Test func idsAloneAreSavedOnlyNowAndThen() {
        var engine = runningEngine([panda])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(50)), now: .seconds(15)) == [])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(51)), now: .seconds(301)) == [.save])
        #expect(engine.handle(.idMoved(attempt: 1, cursor(52)), now: .seconds(316)) == [])
        #expect(engine.cursor == cursor(52))
    }

    @Test func aGatewayThatLostItsTailIsBelievedInItsNewEpoch() {
        var engine = runningEngine([panda])
        engine.handle(.idMoved(attempt: 1, cursor(90, epoch: 4, nonce: 1)))
        engine.handle(.ended(attempt: 1, .closed))
        let now = Duration.seconds(60)
        engine.handle(.woke, now: now)
        // It was restored from a time before epoch 4, and then opened an epoch 4 of its own.
        let resumed = cursor(40, epoch: 4, nonce: 2)
        #expect(
            engine.handle(.opened(attempt: 2, resumedFrom: resumed), now: now) == [
                .save, .saveBudgets, .build(panda),
            ])
        #expect(
            engine.state.positions[.timeline(panda)] == .init(cursor: resumed, awaitsBuild: true))
    }

    @Test func retriesSpreadOverTheServersHintAndHonourRetryAfter() throws {
        var engine = runningEngine([panda])
        engine.handle(.retryHint(.seconds(8)))
        engine.handle(.ended(attempt: 1, .closed))
        let refusal = EngineEvent.Rejection.temporary(retryAfter: .seconds(30))
        var waits: Set<Int64> = []
        for seed in UInt64(1)...20 {
            var other = engine
            other.generator = SplitMix64(seed: seed)
            let wake = try #require(other.nextWake)
            other.handle(.woke, now: wake)
            other.handle(.ended(attempt: 2, .refused(refusal)), now: wake)
            let next = try #require(other.nextWake)
            #expect(next - wake >= .seconds(30))
            waits.insert((next - wake).components.seconds)
        }
        #expect(waits.count > 5, "clients that were refused together come back together")
    }

    @Test func nothingWakesForAMomentThatHasPassed() {
        var engine = runningEngine([panda])
        engine.handle(.ended(attempt: 1, .refused(.unknownClient)))
        engine.handle(.registrationFailed(.permanent))
        var now = Duration.zero
        for _ in 0..<20 {
            guard let wake = engine.nextWake else { break }
            #expect(wake > now, "a timer for the past spins")
            now = wake
            if !engine.handle(.woke, now: now).isEmpty {
                engine.handle(.registrationFailed(.permanent), now: now)
            }
        }
        #expect(now > .seconds(60))
    }
}
