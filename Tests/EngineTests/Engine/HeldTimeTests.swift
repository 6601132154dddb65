import GatewayCore
import GatewayDocuments
import GatewayStorage
import GatewayTestSupport
import NIOCore
import Synchronization
import Testing
import WidgetModel

@testable import GatewayEngine

/// The loops and the explainer without a process, with a clock that stands still.
@Suite struct HeldTimeTests {
    private let clock = HeldClock()
    private static let windowed = StreamFixture.catalog.replacing(
        "kind: detail", with: "kind: detail\n    collapse: 60s")

    @Test func `a collapse window ends when the clock says so`() async throws {
        let fixture = try StreamFixture(clock: clock.gateway)
        try await fixture.putCatalog(Self.windowed)
        let cursor = try await fixture.register("phone")
        let reader = try await fixture.open(try fixture.admit("phone", since: cursor))
        let shard = fixture.loops.all[0]
        try await fixture.change("Character", "panda")
        #expect(try await reader.said().stale == ["detail panda"])
        try await fixture.change("Character", "panda")
        clock.advance(to: clock.now + 59_999)
        try await shard.loop.submit { shard.endWindows() }.get()
        #expect(try await reader.said().stale == ["detail panda"])
        clock.advance(to: clock.now + 1)
        try await shard.loop.submit { shard.endWindows() }.get()
        #expect(try await reader.said().stale == ["detail panda", "detail panda"])
        try await fixture.stop()
    }

    @Test func `a window holds back the ids of those who wait for its end, and of nobody else`()
        async throws
    {
        let fixture = try StreamFixture(clock: clock.gateway)
        try await fixture.putCatalog(Self.windowed)
        let cursor = try await fixture.register("phone")
        try await fixture.register("tablet", character: "owl")
        let phone = try await fixture.open(try fixture.admit("phone", since: cursor))
        let tablet = try await fixture.open(try fixture.admit("tablet", since: cursor))
        let first = try await fixture.change("Character", "panda")
        try await fixture.change("Character", "panda")
        let last = try await fixture.change("Account", "1")
        let (said, heard) = (try await phone.said(), try await tablet.said())
        #expect(said.stale == ["detail panda", "status"] && heard.stale == ["status"])
        #expect(said.id == fixture.cursors.text(first))
        #expect(heard.id == fixture.cursors.text(last))
        try await fixture.stop()
    }

    private static let address: JSONValue = [
        "type": "apns", "pushType": "widgets", "token": .string(String(repeating: "0a", count: 32)),
        "environment": "production",
    ]

    /// A fixture whose pushes go to a sender, and a phone that is reached by pushes alone.
    private func pushing(
        _ sender: RecordingSender, mayPush: @escaping @Sendable () -> Bool = { true }
    ) async throws -> (StreamFixture, PushLoop) {
        let fixture = try StreamFixture(clock: clock.gateway, pushes: true)
        let push = try fixture.startPushes(sender, mayPush: mayPush)
        try await fixture.putCatalog()
        try await fixture.register("phone", delivery: [Self.address])
        return (fixture, push)
    }

    @Test(.timeLimit(.minutes(30))) func `a push is made when it is due and not before`()
        async throws
    {
        let pushes = RecordingSender(clock: clock)
        let (fixture, push) = try await pushing(pushes)
        let sequence = try await fixture.change("Character", "panda")
        while push.position ?? 0 < sequence { await Task.yield() }
        while pushes.times.isEmpty {
            let due = try await push.ask { scheduler, _ in scheduler.nextDue } ?? clock.now
            guard due > clock.now else {
                await Task.yield()
                continue
            }
            clock.advance(to: due - 1)
            _ = try await push.ask { scheduler, _ in scheduler.nextDue }
            #expect(pushes.times.isEmpty)
            clock.advance(to: due)
        }
        #expect(pushes.times == [clock.now])
        // Whoever is owed nothing is owed nothing after a start, whatever is forgotten by then.
        try await eventually("stored") { try fixture.store.pushesClearUpTo() == sequence }
        await push.stop {}
        clock.end()
        try await fixture.stop()
    }

    @Test(.timeLimit(.minutes(30))) func `a push carries a cursor of the epoch that decided it`()
        async throws
    {
        let pushes = RecordingSender(clock: clock)
        let (fixture, push) = try await pushing(pushes)
        let sequence = try await fixture.change("Character", "nobody's")
        while push.position ?? 0 < sequence { await Task.yield() }
        let reload = LogEntry(
            sequence: sequence + 1, app: StreamFixture.app, acceptedAt: 0, urgency: .high,
            body: .reload(.everything))
        push.submit([.log(.entry(reload)), .log(.epoch(EpochID(ordinal: 99, nonce: 0)))])
        while pushes.orders.isEmpty { await Task.yield() }
        #expect(pushes.orders[0].epoch.ordinal < 99)
        await push.stop {}
        clock.end()
        try await fixture.stop()
    }

    @Test(.timeLimit(.minutes(30))) func `a push waits while another gateway may lead`()
        async throws
    {
        let pushes = RecordingSender(clock: clock)
        let lease = Lease()
        let (fixture, push) = try await pushing(pushes) { lease.holds }
        let sequence = try await fixture.change("Character", "panda")
        while push.position ?? 0 < sequence { await Task.yield() }
        /// Lets the time pass until something has happened.
        func pass(until isOver: () -> Bool) async throws {
            while !isOver() {
                let due = try await push.ask { scheduler, _ in scheduler.nextDue }
                if let due, due > clock.now { clock.advance(to: due) }
                await Task.yield()
            }
        }
        // As often as it is due, and more often than any budget allows.
        try await pass { lease.asked >= 100 || !pushes.times.isEmpty }
        #expect(pushes.times.isEmpty)
        let end = clock.now
        lease.begin()
        try await pass { !pushes.times.isEmpty }
        #expect(pushes.times.allSatisfy { $0 <= end + 1_000 })
        await push.stop {}
        clock.end()
        try await fixture.stop()
    }

    /// A lease that does not hold at first.
    private final class Lease: Sendable {
        private let state = Mutex((holds: false, asked: 0))

        /// Whether it holds; counts the questions.
        var holds: Bool {
            state.withLock { state in
                state.asked += 1
                return state.holds
            }
        }

        var asked: Int { state.withLock { $0.asked } }

        func begin() { state.withLock { $0.holds = true } }
    }

    @Test(.timeLimit(.minutes(30))) func `a stream that was open before the address has its time`()
        async throws
    {
        let fixture = try StreamFixture(clock: clock.gateway, pushes: true)
        let pushes = RecordingSender(clock: clock)
        let push = try fixture.startPushes(pushes)
        try await fixture.putCatalog()
        let cursor = try await fixture.register("phone")
        let reader = try await fixture.open(try fixture.admit("phone", since: cursor))
        try await fixture.register("phone", delivery: [["type": "stream"], Self.address])
        let sequence = try await fixture.change("Character", "panda")
        while push.position ?? 0 < sequence { await Task.yield() }
        #expect(try await reader.said().stale == ["detail panda"])
        let due = try await push.ask { scheduler, _ in scheduler.nextDue }
        #expect(pushes.times.isEmpty && due == clock.now + DeliveryAttempts.grace)
        // It confirms nothing, so the push follows.
        clock.advance(to: clock.now + DeliveryAttempts.grace)
        try await eventually("pushed") { !pushes.times.isEmpty }
        await push.stop {}
        clock.end()
        try await fixture.stop()
    }

    @Test func `an explanation tells since when a widget is stale`() async throws {
        let fixture = try StreamFixture(clock: clock.gateway)
        let explainer = Explainer(fixture.engine) { PushScheduler.Terms() }
        try await fixture.putCatalog()
        try await fixture.register("phone")
        let accepted = clock.wall
        let sequence = try await fixture.change("Character", "panda")
        clock.advance(to: clock.now + 90_000)
        #expect(explainer.time.wall == accepted + 90_000)
        #expect(explainer.time.monotonic == clock.now)
        let client = try #require(try await explainer.client(StreamFixture.key("phone")))
        let stale = client.widgets.first?.stale
        #expect(stale?.time == timestamp(accepted) && stale?.sequence == sequence)
        #expect(client.widgets.last?.fresh == true)

        let logged = try #require(try await explainer.logged(sequence, app: StreamFixture.app))
        let decision = try logged.ruleSet.decide(logged.change, limits: Limits())
        let tallies = try await explainer.tallies(
            of: ExplainedChanges(
                app: StreamFixture.app, ruleSet: logged.ruleSet, changes: [logged.change],
                decisions: [decision], sequence: sequence)
        ) { true }
        #expect(tallies.map(\.holders) == [1])
        try await fixture.stop()
    }
}
