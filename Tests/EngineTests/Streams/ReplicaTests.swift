import Foundation
import GatewayDelivery
import GatewayOperations
import GatewayTestSupport
import Synchronization
import Testing
import WidgetModel

@testable import GatewayCore
@testable import GatewayEngine
@testable import GatewayStorage

/// A gateway that repeats another one's store answers as that one does.
@Suite struct ReplicaTests {
    @Test func aReplicaTellsPollsAndStreamsWhatTheLeaderTells() async throws {
        let pair = try await ReplicaPair()
        try await pair.leader.putCatalog()
        let cursor = try await pair.leader.register("phone")
        try await pair.leader.register("tablet", character: "cat", account: "2")
        #expect(try await pair.poll("phone", since: cursor).stale == [])
        let reader = try await pair.replica.open(
            try pair.replica.admit("tablet", since: cursor), on: 1)

        try await pair.leader.change("Character", "panda")
        try await pair.leader.change("Account", "2")
        let first = try await pair.poll("phone", since: cursor)
        #expect(first.stale == ["detail panda"])
        #expect(try await reader.said().stale == ["status"])

        // Another registration, whose stream is open at the replica.
        try await pair.leader.register("tablet", character: "panda", account: "2")
        try await pair.follow()
        try await pair.leader.change("Character", "panda")
        try await pair.leader.change("Character", "cat")
        _ = try await pair.poll("phone", since: first.cursor)
        #expect(try await reader.said().stale.last == "detail panda")

        // Reloads, a catalog with other rules, and removals.
        _ = try await pair.leader.engine.changes.reload(.kind("status"), app: StreamFixture.app)
        let second = try await pair.poll("phone", since: first.cursor)
        #expect(second.stale.sorted() == ["detail panda", "status"])
        try await pair.leader.putCatalog(
            StreamFixture.catalog.replacingOccurrences(
                of: "entity: Account", with: "entity: Character"))
        try await pair.leader.change("Character", "dog")
        _ = try await pair.poll("phone", since: second.cursor)
        try await pair.leader.engine.clients.remove(StreamFixture.key("tablet"))
        try await pair.follow()
        try await eventually("the stream of a removed client ends") {
            try await reader.said().isEnded
        }
        #expect(pair.replica.engine.registry.record(StreamFixture.key("tablet")) == nil)
        _ = try await pair.leader.engine.log.removeApp(StreamFixture.app)
        try await pair.follow()
        #expect(pair.replica.engine.catalogs.document(of: StreamFixture.app) == nil)
        #expect(pair.replica.engine.registry.count == 0)
        #expect(pair.replica.store.usage == pair.leader.store.usage)
        try await pair.stop()
    }

    @Test func aPlainEpochChangesNamesAndAVoidOneEverything() async throws {
        let pair = try await ReplicaPair()
        try await pair.leader.putCatalog()
        let cursor = try await pair.leader.register("phone")
        try await pair.follow()
        let reader = try await pair.replica.open(try pair.replica.admit("phone", since: cursor))
        let era = pair.replica.cursors.epoch

        // Another gateway leads, and nothing was lost.
        try await pair.openEpoch(2)
        #expect(pair.replica.cursors.epoch == era)
        let second = try await pair.poll("phone", since: cursor)
        #expect(second.stale == [])
        #expect(Cursor(text: second.cursor)?.epoch.ordinal == 2)
        #expect(try await reader.said().stale == [])

        // A cursor that only the leader can know: the replica does not void anything.
        let seal = CursorSeal(try StoreHashes(secret: pair.replica.store.secret).stored)
        let unknown = seal.cursor(EpochID(ordinal: 9, nonce: 9), 1_000).text
        let answer = try await pair.replica.poll(
            try pair.replica.admit("phone", since: unknown, stream: false))
        #expect(answer.stale == ["all"])
        #expect(pair.replica.cursors.epoch == era)
        #expect(try await reader.said().stale == [])

        try await pair.openEpoch(30, voidsOlder: true)
        try await eventually("everything is stale") {
            try await reader.said().stale == ["all"]
        }
        #expect(try await pair.poll("phone", since: second.cursor).stale == ["all"])
        let third = try await pair.poll("phone", since: nil)
        #expect(try await pair.poll("phone", since: third.cursor).stale == [])
        try await pair.stop()
    }

    @Test func aReplicaThatStartsAgainIsAsItWas() async throws {
        let pair = try await ReplicaPair()
        try await pair.leader.putCatalog()
        let cursor = try await pair.leader.register("phone")
        try await pair.leader.change("Character", "panda")
        try await pair.openEpoch(2)
        let before = try await pair.poll("phone", since: cursor)
        let again = try StreamFixture(pair.replica.store, isShared: true)
        let after = try await again.poll(try again.admit("phone", since: cursor, stream: false))
        #expect(after.stale == before.stale)
        #expect(after.cursor == before.cursor)
        try await pair.stop()
    }

    private static let address: JSONValue = [
        "type": "apns", "pushType": "widgets", "token": .string(String(repeating: "0a", count: 32)),
        "environment": "production",
    ]

    @Test func pushesGoOnWhereTheLeaderThatPushedLeftThem() async throws {
        let clock = HeldClock()
        let pair = try await ReplicaPair(clock: clock.gateway, pushes: true)
        let senders = [RecordingSender(), RecordingSender()]
        let loops = try zip([pair.leader, pair.replica], senders).map { try $0.startPushes($1) }
        /// Lets hours pass at both, with everything that becomes due in them.
        func wait() async throws {
            let end = clock.now + 6 * 3_600_000
            while clock.now < end {
                var next = end
                for loop in loops {
                    while try await !loop.isCaughtUp() { await Task.yield() }
                    let due = try await loop.ask { scheduler, _ in scheduler.nextDue } ?? end
                    next = min(next, max(due, clock.now + 1))
                }
                clock.advance(to: next)
            }
        }
        try await loops[0].lead(from: pair.leader.store)
        try await pair.leader.putCatalog()
        try await pair.leader.register("phone", delivery: [Self.address])
        try await pair.leader.register("tablet", character: "cat", account: "2")
        let sequence = try await pair.leader.change("Character", "panda")
        try await pair.follow()
        try await eventually("it is pushed") {
            try await wait()
            return senders[0].orders.count == 1
        }
        try await eventually("that is stored") {
            try pair.leader.store.pushesClearUpTo() == sequence
        }
        try await pair.follow()
        #expect(senders[1].orders.isEmpty)
        #expect(try await loops[1].ask { scheduler, _ in scheduler.keys.isEmpty })

        await loops[0].rest()
        try await loops[1].lead(from: pair.replica.store)
        try await wait()
        // What was pushed is not pushed again.
        #expect(senders.map(\.orders.count) == [1, 0])
        let next = try await pair.leader.change("Character", "panda")
        try await pair.follow()
        while loops.contains(where: { $0.position ?? 0 < next }) { await Task.yield() }
        try await eventually("the other one pushes") {
            try await wait()
            return senders[1].orders.count == 1
        }
        #expect(senders[0].orders.count == 1)

        // A client that confirms while no node pushes gets no push.
        await loops[1].rest()
        let last = try await pair.leader.change("Character", "panda")
        try await pair.follow()
        while loops.contains(where: { $0.position ?? 0 < last }) { await Task.yield() }
        try await pair.replica.engine.clients.acknowledge(
            StreamFixture.key("phone"), at: last, in: pair.replica.cursors.epoch,
            recommendations: [], rebuilt: [])
        try await loops[1].lead(from: pair.replica.store)
        try await wait()
        #expect(senders.map(\.orders.count) == [1, 1])
        // Nor does one lead whose lease ended as it began.
        await loops[0].rest()
        let late = Task {
            while !Task.isCancelled { await Task.yield() }
            try await loops[0].lead(from: pair.leader.store)
        }
        late.cancel()
        try await late.value
        #expect(try await loops[0].ask { scheduler, _ in scheduler.keys.isEmpty })
        for loop in loops { await loop.stop {} }
        clock.end()
        try await pair.stop()
    }

    @Test func `what another node tells of another era confirms nothing`() async throws {
        let pair = try await ReplicaPair()
        try await pair.leader.putCatalog()
        try await pair.leader.register("phone")
        let (clients, registry) = (pair.leader.engine.clients, pair.leader.engine.registry)
        let key = StreamFixture.key("phone")
        var contact = NodeContact()
        (contact.streams, contact.confirmed, contact.polled, contact.streamed) = (1, 7, 7, 7)
        clients.heard([(key, contact)], at: "b", era: clients.era + 1)
        let recorded = registry.note(NodeContact(), of: key, at: "b")?.before
        // Its stream is one, whatever the log lost.
        #expect(recorded?.streams == 1)
        #expect(recorded.map { [$0.confirmed, $0.polled, $0.streamed] } == [0, 0, 0])
        clients.heard([(key, contact)], at: "b", era: clients.era)
        #expect(registry.note(NodeContact(), of: key, at: "b")?.before == contact)
        try await pair.stop()
    }

    @Test func `pushes know of a stream elsewhere while it matters`() async throws {
        let pair = try await ReplicaPair(pushes: true)
        let push = try #require(pair.leader.engine.push)
        try await push.lead(from: pair.leader.store)
        try await pair.leader.putCatalog()
        let (clients, key) = (pair.leader.engine.clients, StreamFixture.key("phone"))
        var contact = NodeContact()
        func isStreaming() async throws -> Bool {
            clients.heard([(key, contact)], at: "b", era: clients.era)
            while try await !push.isCaughtUp() { await Task.yield() }
            return try await push.ask { scheduler, _ in scheduler.isStreaming(key) }
        }
        try await pair.leader.register("phone")
        (contact.streams, contact.isStreaming) = (1, true)
        #expect(try await !isStreaming())
        try await pair.leader.register("phone", delivery: [Self.address])
        #expect(try await isStreaming())
        #expect(try await isStreaming())
        try await clients.remove(key)
        contact = NodeContact()
        #expect(try await !isStreaming())
        try await pair.leader.register("phone", delivery: [Self.address])
        #expect(try await push.ask { scheduler, _ in !scheduler.isStreaming(key) })
        await push.stop {}
        try await pair.stop()
    }

    @Test func `a cursor that proves a loss gets no epoch before the log has one`() async throws {
        let pair = try await ReplicaPair()
        let cursors = pair.replica.cursors
        let seal = CursorSeal(try StoreHashes(secret: pair.replica.store.secret).stored)
        let judged = cursors.judge(seal.cursor(EpochID(ordinal: 9, nonce: 9), 1_000).text)
        #expect(judged.point == .everything)
        #expect(judged.epoch == cursors.epoch)
        #expect(judged.epoch.ordinal == 1)
        try await pair.stop()
    }

    /// Confirms what is appended, unless its script throws.
    private final class ScriptedLog: StoreReplication {
        let secrets = StoreSecrets(Array(0..<UInt8(StoreSecrets.byteCount)))
        let script = Mutex<@Sendable () throws(StoreError) -> Void>({})

        var refusal: StoreError? { nil }

        func append(
            _ operations: [StoreOperation], head: UInt64
        ) throws(StoreError) -> Data {
            try script.withLock { $0 }()
            return Data("1".utf8)
        }

        func diverged() {}
    }

    @Test func `an epoch that the log does not confirm is not announced`() async throws {
        let log = ScriptedLog()
        let fixture = try StreamFixture(
            SQLiteStore(inMemory: StoreConfiguration(), replication: log), isShared: true)
        let engineLog = fixture.engine.log
        func open(_ ordinal: UInt32, voidsOlder: Bool) async throws {
            _ = try await fixture.store.write(cost: 1) {
                try engineLog.openEpoch(
                    EpochID(ordinal: ordinal, nonce: ordinal), voidsOlder: voidsOlder, &$0)
            }
        }
        try await open(1, voidsOlder: false)
        let era = fixture.cursors.epoch
        log.script.withLock { $0 = { () throws(StoreError) in throw .unconfirmed(reason: "cut") } }
        await #expect(throws: StoreError.self) { try await open(30, voidsOlder: true) }
        #expect(fixture.cursors.epoch == era)
        log.script.withLock { $0 = {} }
        try await open(30, voidsOlder: true)
        #expect(fixture.cursors.epoch.ordinal == 30)
        try await fixture.stop()
    }

    @Test func `a catalog without confirmation is not in force at a follower`() async throws {
        let log = ScriptedLog()
        let fixture = try StreamFixture(
            SQLiteStore(inMemory: StoreConfiguration(), replication: log), isShared: true)
        let engineLog = fixture.engine.log
        _ = try await fixture.store.write(cost: 1) {
            try engineLog.openEpoch(EpochID(ordinal: 1, nonce: 1), voidsOlder: false, &$0)
        }
        try await fixture.putCatalog()
        let etag = fixture.engine.catalogs.document(of: StreamFixture.app)?.etag
        log.script.withLock { $0 = { () throws(StoreError) in throw .unconfirmed(reason: "cut") } }
        await #expect(throws: (any Error).self) {
            try await fixture.putCatalog(StreamFixture.catalog + "\n# another")
        }
        let position = try #require(try fixture.store.replicationPosition())
        _ = try await fixture.store.writeLocally(cost: 1) {
            try engineLog.repeatBatch(
                [.setMeta("key", nil)], to: Data("2".utf8), from: position, &$0)
        }
        #expect(fixture.engine.catalogs.document(of: StreamFixture.app)?.etag == etag)
        try await fixture.stop()
    }

    @Test func `a cursor of an append that is under way proves no loss`() async throws {
        let isUnderWay = Mutex(false)
        let goesOn = DispatchSemaphore(value: 0)
        let log = ScriptedLog()
        let store = try SQLiteStore(inMemory: StoreConfiguration(), replication: log)
        let epoch = try await store.write(cost: 1) {
            try $0.openEpoch(id: 1, atLeast: 0, now: 1, voidsOlder: false, kept: 10)
        }.value
        // The append ends no sooner than the judge has asked who leads.
        let history = try EpochHistory(
            following: store, clock: .system, leader: NobodyElse { goesOn.signal() })
        log.script.withLock {
            $0 = {
                isUnderWay.withLock { $0 = true }
                goesOn.wait()
            }
        }
        async let change = store.write(cost: 1) {
            try $0.append(
                app: "app", type: .change, source: nil, eventID: nil, acceptedAt: 1,
                payload: Data())
        }
        try await eventually("the append is under way") { isUnderWay.withLock { $0 } }
        let cursor = Cursor(epoch: EpochLedger.Epoch(epoch).id, sequence: 1, tag: 0)
        try await history.find(cursor)
        #expect(history.isKnown(cursor))
        goesOn.signal()
        _ = try await change
    }
}
