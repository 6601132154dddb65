import Testing
import WidgetModel

@testable import TimelineClient

/// The engine's behavior when the gateway's current registration is not the one it assumes.
@Suite struct EngineMismatchTests {
    private let panda = character("Panda")
    private let other = EngineEvent.Rejection.otherRegistration(digest: "other")

    /// Returns an engine whose stream can be refused or open.
    private func connected() -> ReloadEngine {
        var engine = ReloadEngine(
            state: EngineState(
                registered: registration([panda]), digest: "own", position: cursor(10),
                positions: [.timeline(panda): .init(cursor: cursor(10), awaitsBuild: false)]),
            desired: registration([panda]), seed: 1)
        let orders = engine.handle(
            .started([.init(widget: panda, reloadDate: nil)]), now: .zero)
        #expect(orders == [.connect(attempt: 1, since: cursor(10))])
        return engine
    }

    @Test func `a refused stream is asked for again once it has registered`() {
        var engine = connected()
        #expect(
            engine.handle(.ended(attempt: 1, .refused(other)), now: .zero) == [
                .reconcile(registration([panda]))
            ])
        #expect(
            engine.handle(.registered(nil, digest: "other"), now: .zero) == [
                .save, .connect(attempt: 2, since: cursor(10)),
            ])
        #expect(engine.state.digest == "other")
        // After a second refusal, it waits before it asks again.
        #expect(
            engine.handle(
                .ended(attempt: 2, .refused(.otherRegistration(digest: "third"))), now: .zero) == [
                    .reconcile(registration([panda]))
                ])
        #expect(engine.handle(.registered(cursor(10), digest: "fourth"), now: .zero) == [.save])
        #expect(
            engine.handle(.woke, now: .seconds(60)) == [.connect(attempt: 3, since: cursor(10))])
    }

    /// A restore or another process may have changed the registration between reading and patching
    /// it.
    @Test func `what a patch leaves in force is read before it is relied on`() {
        var engine = connected()
        _ = engine.handle(.ended(attempt: 1, .refused(other)), now: .zero)
        #expect(
            engine.handle(.patched(cursor(11)), now: .zero) == [
                .save, .reconcile(registration([panda])),
            ])
        // The mismatch is not forgotten when the process ends here.
        #expect(engine.state.digest == "own")
        var next = ReloadEngine(
            state: engine.state, desired: registration([panda]), seed: 2)
        #expect(
            next.handle(.started([.init(widget: panda, reloadDate: nil)]), now: .zero) == [
                .reconcile(registration([panda]))
            ])
        #expect(
            engine.handle(.registered(nil, digest: "other"), now: .zero) == [
                .save, .connect(attempt: 2, since: cursor(10)),
            ])
        #expect(!engine.state.mustReadRegistration)
    }

    @Test func `a registration that lacks something each time is patched ever more rarely`() {
        var engine = connected()
        var orders = engine.handle(.ended(attempt: 1, .refused(other)), now: .zero)
        var patches = 0
        while orders.contains(.reconcile(registration([panda]))) {
            patches += 1
            orders = engine.handle(.patched(cursor(11)), now: .zero)
        }
        #expect(patches == 4)
        #expect(engine.isAtRest)
        #expect(
            engine.handle(.woke, now: .seconds(60)) == [.reconcile(registration([panda]))])
        #expect(engine.handle(.patched(cursor(12)), now: .seconds(60)) == [.save])
    }

    @Test func `a registration that could not be read is read later, and nothing asked before`() {
        var engine = connected()
        _ = engine.handle(.ended(attempt: 1, .refused(other)), now: .zero)
        #expect(
            engine.handle(.registrationFailed(.temporary(retryAfter: nil)), now: .zero) == [])
        #expect(engine.isAtRest)
        #expect(
            engine.handle(.woke, now: .seconds(60)) == [.reconcile(registration([panda]))])
    }

    @Test func `a client that is forgotten meanwhile registers whole`() {
        var engine = connected()
        _ = engine.handle(.ended(attempt: 1, .refused(other)), now: .zero)
        let orders = engine.handle(.registrationFailed(.unknownClient), now: .zero)
        #expect(orders.contains(.register(registration([panda]))))
        #expect(engine.digest == nil)
    }

    @Test func `an acknowledgement that is refused is kept until it has registered`() {
        var engine = connected()
        _ = engine.handle(.opened(attempt: 1, resumedFrom: cursor(10)), now: .zero)
        _ = engine.handle(.idMoved(attempt: 1, cursor(11)), now: .zero)
        _ = engine.handle(.notification(attempt: 1, claims(sequence: 11)), now: .zero)
        #expect(
            engine.handle(.acknowledgementFailed(other), now: .zero) == [
                .reconcile(registration([panda]))
            ])
        #expect(engine.handle(.registered(nil, digest: "other"), now: .zero) == [.save])
        #expect(
            engine.handle(.woke, now: .seconds(60)) == [
                .acknowledge(Acknowledgement(cursor: cursor(11)))
            ])
    }

    /// A request sent before the gateway accepted a registration may be refused after it.
    @Test func `what names the digest that it has is no mismatch`() {
        var engine = connected()
        let orders = engine.handle(
            .ended(attempt: 1, .refused(.otherRegistration(digest: "own"))), now: .zero)
        #expect(orders == [.connect(attempt: 2, since: cursor(10))])
    }
}
