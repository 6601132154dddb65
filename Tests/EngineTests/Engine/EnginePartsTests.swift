import Foundation
import Synchronization
import Testing
import WidgetModel

@testable import GatewayCore
@testable import GatewayEngine
@testable import GatewayOperations

/// The entity tags of catalogs.
@Suite struct CatalogDocumentTests {
    private let hash = SipHash(1, 2)

    @Test func `other documents have another tag, with another secret too`() {
        let tag = CatalogDocument.etag(of: Array("a".utf8), hash)
        #expect(tag == CatalogDocument.etag(of: Array("a".utf8), hash))
        #expect(tag != CatalogDocument.etag(of: Array("b".utf8), hash))
        #expect(tag != CatalogDocument.etag(of: Array("a".utf8), SipHash(1, 3)))
        #expect(tag.hasPrefix("\"") && tag.hasSuffix("\""))
    }

    @Test func `each use has a key of its own, and old cursors stay valid`() throws {
        let secret = Data((0..<32).map { UInt8($0) })
        let hashes = try StoreHashes(secret: secret)
        let cursor = CursorSeal(SipHash(secret: Array(secret)))
            .cursor(EpochID(ordinal: 3, nonce: 4), 5)
        #expect(CursorSeal(hashes.stored).isGenuine(cursor))
        let uses = [hashes.stored, hashes.keys, hashes.documents]
        #expect(Set(uses.map { $0("a") }).count == uses.count)
        #expect(try StoreHashes(secret: secret).keys("a") == hashes.keys("a"))
        #expect(try StoreHashes(secret: Data(secret.reversed())).keys("a") != hashes.keys("a"))
    }

    /// An uploader chooses the document and reads its tag, so the tag must not seal a cursor.
    @Test func `a tag is not the hash that seals a cursor`() {
        let epoch = EpochID(ordinal: 3, nonce: 4)
        let sealed = CursorSeal(hash).cursor(epoch, 5).tag
        let words: [UInt64] = [2, UInt64(epoch.ordinal) << 32 | UInt64(epoch.nonce), 5]
        let document = words.flatMap { word in (0..<8).map { UInt8(word >> (8 * $0) & 0xFF) } }
        #expect(hash(document) == sealed, "what the tag would be without its prefix")
        #expect(CatalogDocument.etag(of: document, hash) != "\"\(String(sealed, radix: 16))\"")
    }
}

@Suite struct StagedTests {
    @Test func `a failed transaction takes back all its changes`() {
        var staged = Staged([0])
        staged.change(at: 5) { $0.append(5) }
        staged.change(at: 7) { $0.append(7) }
        staged.rollBack(before: 8)
        #expect(staged.value == [0, 5, 7])
        staged.rollBack(before: 5)
        #expect(staged.value == [0])
        staged.rollBack(before: 5)
        #expect(staged.value == [0])
    }

    @Test func `what is on disk stays, whatever fails later`() {
        var staged = Staged([0])
        staged.change(at: 5) { $0.append(5) }
        staged.commit(5)
        staged.change(at: 6) { $0.append(6) }
        staged.rollBack(before: 6)
        #expect(staged.value == [0, 5])
    }

    @Test func `a transaction that began before the change gives it up`() {
        var staged = Staged([0])
        staged.change(at: 5) { $0.append(5) }
        staged.rollBack(before: 3)
        #expect(staged.value == [0])
    }

    /// Runs transactions of several entries, which may each change the value and which are
    /// committed or fail as a whole, and compares with a model that keeps the changes of committed
    /// ones only.
    @Test(arguments: 0..<50)
    func `it is as the committed transactions leave it`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var staged = Staged([UInt64]())
        var committed: [UInt64] = []
        var head: UInt64 = 0
        for _ in 0..<200 {
            var (next, changes) = (head + 1, [UInt64]())
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                staged.rollBack(before: next)
                #expect(staged.value == committed + changes)
                if Bool.random(using: &random) {
                    staged.change(at: next) { [next] in $0.append(next) }
                    changes.append(next)
                }
                next += 1
            }
            if Int.random(in: 0..<3, using: &random) > 0 {
                for sequence in changes { staged.commit(sequence) }
                committed += changes
                head = next - 1
            }
        }
    }
}

@Suite struct ExplainTurnsTests {
    private final class Order: Sendable {
        private let apps = Mutex<[String]>([])
        var all: [String] { apps.withLock { $0 } }
        func note(_ app: String) { apps.withLock { $0.append(app) } }
    }

    /// One app asks as often as it can; the operator of another one waits for a single turn, not
    /// for all of them.
    @Test func `apps take turns and one of them cannot fill the queue`() async throws {
        let turns = ExplainTurns()
        let order = Order()
        try await turns.begin(app: "greedy")
        try await withThrowingTaskGroup(of: Void.self) { group in
            let ask = { @Sendable (app: String) in
                try await turns.begin(app: app)
                order.note(app)
                turns.end()
            }
            let share = ExplainTurns.waitingMax * 4 / 5
            for count in 1...share {
                group.addTask { try await ask("greedy") }
                while turns.waitingCount < count { await Task.yield() }
            }
            await #expect(throws: (any Error).self) { try await turns.begin(app: "greedy") }
            group.addTask { try await ask("other") }
            while turns.waitingCount <= share { await Task.yield() }
            turns.end()
            try await group.waitForAll()
            let place = order.all.firstIndex(of: "other")
            #expect(place.map { $0 <= 1 } == true)
            #expect(order.all.count == share + 1)
        }
        // The turn is available again.
        try await turns.begin(app: "greedy")
        turns.end()
    }
}

/// The seconds in which the heartbeats of streams are due.
@Suite struct HeartbeatWheelTests {
    private func stream(_ number: UInt32) -> StreamID { StreamID(slot: number, serial: 0) }

    @Test(arguments: [1, 2, 15, 30]) func `a heartbeat is due once in each interval`(interval: Int)
    {
        var wheel = HeartbeatWheel(interval: interval)
        wheel.add(stream(1))
        for second in 1...(3 * interval) {
            let due = wheel.advance()
            #expect(due == (second.isMultiple(of: interval) ? [stream(1)] : []))
            for id in due { wheel.add(id) }
        }
    }

    @Test func `streams opened in different seconds are due in different ones`() {
        var wheel = HeartbeatWheel(interval: 3)
        wheel.add(stream(1))
        #expect(wheel.advance() == [])
        wheel.add(stream(2))
        #expect(wheel.advance() == [])
        #expect(wheel.advance() == [stream(1)])
        #expect(wheel.advance() == [stream(2)])
        #expect(wheel.advance() == [] && wheel.advance() == [], "they were not added again")
    }
}
