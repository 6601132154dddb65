import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore
@testable import GatewayPush

/// Pushes to a client that is connected to other nodes, and that another node takes over.
@Suite final class SharedPushTests {
    private static let key = ClientKey(app: "app", client: "c")
    private var small: SmallPushScheduler

    init() throws {
        small = try SmallPushScheduler(isShared: true)
        small.scheduler.registered(
            device(["1"], named: "c", delivery: [apns()], since: small.head, addressedAt: 0),
            app: "app", now: small.now)
    }

    /// Returns the clients whose evidence is asked for, and the pushes, since the last call.
    private func actions() -> (asked: [ClientKey], pushes: [DuePush]) {
        var (asked, pushes): ([ClientKey], [DuePush]) = ([], [])
        for action in small.scheduler.takeActions() {
            switch action {
            case .readEvidence(let key): asked.append(key)
            case .push(let order): pushes.append(order)
            case .drop, .disabled: break
            }
        }
        return (asked, pushes)
    }

    private var progress: PushScheduler.Progress? { small.scheduler.progress(of: Self.key) }

    private func answer(_ evidence: PushScheduler.Evidence?) {
        small.scheduler.received(evidence, about: Self.key, now: small.now)
    }

    @Test func `a push waits for the knowledge of the other nodes`() throws {
        try small.change("1")
        var seen = actions()
        #expect(seen.asked == [Self.key])
        #expect(seen.pushes.isEmpty)
        answer(PushScheduler.Evidence.none)
        seen = actions()
        #expect(seen.asked.isEmpty)
        #expect(seen.pushes.count == 1)
    }

    @Test func `who confirmed it at another node is not pushed to`() throws {
        try small.change("1")
        _ = actions()
        answer(.init(confirmed: small.head, isStreaming: false))
        small.wait(86_400_000)
        #expect(actions().pushes.isEmpty)
    }

    @Test func `a stream at another node has time to confirm`() throws {
        try small.change("1")
        _ = actions()
        answer(.init(confirmed: 0, isStreaming: true))
        small.wait(DeliveryAttempts.grace - 1)
        #expect(actions().asked.isEmpty)
        small.wait(1)
        #expect(actions().asked == [Self.key])
        answer(.init(confirmed: 0, isStreaming: true))
        #expect(actions().pushes.map(\.cause) == [.notAcknowledged])
    }

    @Test func `evidence that cannot be read is asked for again`() throws {
        try small.change("1")
        _ = actions()
        answer(nil)
        #expect(actions().pushes.isEmpty)
        small.wait(2_000)
        #expect(actions().asked == [Self.key])
        answer(PushScheduler.Evidence.none)
        #expect(actions().pushes.count == 1)
    }

    @Test func `an old confirmation is no sign that a push arrived`() throws {
        let old = PushScheduler.Evidence(confirmed: small.head, isStreaming: false)
        small.scheduler.acknowledged(Self.key, upTo: small.head, now: small.now)
        try small.change("1")
        _ = actions()
        answer(old)
        try small.finish(actions().pushes.first)
        small.wait(DeliveryAttempts.repeatWaits[0])
        #expect(actions().asked == [Self.key])
        answer(old)
        #expect(actions().pushes.count == 1, "a repeated push")
    }

    @Test func `requests under way count as pushes under way`() throws {
        var terms = PushScheduler.Terms()
        terms.underWayMax = 1
        small = try SmallPushScheduler(terms: terms, isShared: true)
        for name in ["a", "b"] {
            small.scheduler.registered(
                device(
                    ["1"], named: name, delivery: [apns(name)], since: small.head, addressedAt: 0),
                app: "app", now: small.now)
        }
        try small.change("1")
        let first = actions().asked
        #expect(first.count == 1)
        small.scheduler.received(
            PushScheduler.Evidence.none, about: try #require(first.first), now: small.now)
        let pushes = actions().pushes
        #expect(pushes.count == 1)
        try small.finish(pushes.first)
        #expect(actions().asked.count == 1)
    }

    @Test func `progress is what another node needs to go on`() throws {
        #expect(progress == .init(told: 1, isOwed: false))
        try small.change("2")
        #expect(progress == .init(told: 2, isOwed: false))
        try small.change("1")
        try small.change("1")
        #expect(progress == .init(told: 2, isOwed: true))
        _ = actions()
        answer(PushScheduler.Evidence.none)
        let push = actions().pushes.first
        #expect(progress == .init(told: 2, isOwed: true))
        try small.finish(push)
        #expect(progress == .init(told: 4, isOwed: false))
    }

    /// The versions from before the position of the new owner are forgotten.
    @Test func `a quiet client is not pushed to because its owner changes`() throws {
        try small.change("1")
        _ = actions()
        answer(PushScheduler.Evidence.none)
        try small.finish(actions().pushes.first)
        let changed = small.scheduler.takeChanged(limit: 9, now: small.now, wall: 0)
        let saved = try #require(changed.first?.saved)
        for _ in 0..<50 { try small.change("9") }
        let record = try #require(small.scheduler.clients[Self.key]?.record)
        func owner(told: UInt64) throws -> SmallPushScheduler {
            var next = small
            var shard = Shard(floor: small.head)
            shard.install(try #require(small.decider.ruleSets["app"]))
            next.scheduler = PushScheduler(
                shard, terms: small.terms, hash: testHash, isShared: true)
            next.scheduler.restore(
                record, app: "app", saved, told: told, now: next.now, wall: 0)
            return next
        }
        small = try owner(told: small.head)
        #expect(actions().asked.isEmpty)
        small.wait(86_400_000)
        try small.change("1")
        _ = actions()
        answer(PushScheduler.Evidence.none)
        let push = try #require(actions().pushes.first)
        #expect(!push.content.all)
        #expect(push.content.sequence == small.head)
    }

    @Test func `a released client is stored no more and pushed to no more`() throws {
        try small.change("1")
        small.scheduler.release(Self.key)
        let changed = small.scheduler.takeChanged(limit: 9, now: small.now, wall: 0)
        #expect(changed.isEmpty)
        answer(PushScheduler.Evidence.none)
        #expect(actions().pushes.isEmpty)
        #expect(progress == nil)
    }
}
