import Testing
import WidgetModel

@testable import TimelineRuntime

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
