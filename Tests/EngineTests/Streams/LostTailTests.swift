import Foundation
import GatewayCore
import GatewayTestSupport
import NIOCore
import Synchronization
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer
@testable import GatewayStorage

/// A log that lost its end unnoticed: clients that resumed before the first cursor proves the loss
/// must rebuild everything, too.
@Suite struct LostTailTests {
    /// A disk with free space, until a test takes it away.
    private final class Disk: Sendable {
        let free = Mutex<Int64>(1 << 30)

        func fill() { free.withLock { $0 = 0 } }
        func clear() { free.withLock { $0 = 1 << 30 } }
    }

    /// A gateway on an older copy of a data directory whose gateway kept running. The copy cannot
    /// be distinguished from the original: only cursors prove the loss.
    private struct Loss {
        let fixture: StreamFixture
        /// The directory of the copy.
        let data: String
        /// A cursor from before the copy was made.
        let early: String
        /// Cursors from after that: one of the epoch that the copy knows, and one of an epoch that
        /// it does not.
        let late: [String]
        /// The disk of the copy.
        let disk = Disk()

        init() async throws {
            let data = try GatewayProcess.temporaryDirectory()
            let copy = data + "-copy"
            var fixture = try StreamFixture(try SQLiteStore(directory: data))
            try await fixture.putCatalog()
            try await fixture.register("phone")
            let other = try await fixture.register("tablet")
            early = other
            try await fixture.stop()
            try FileManager.default.copyItem(atPath: data, toPath: copy)
            var late: [String] = []
            for _ in 0..<3 {
                fixture = try StreamFixture(try SQLiteStore(directory: data))
                for _ in 0..<3 { try await fixture.change("Character", "panda") }
                late.append(fixture.cursors.text(fixture.store.head))
                try await fixture.stop()
            }
            self.late = late
            self.data = copy
            // As if the copy had been put back into the same files.
            let disk = disk
            var configuration = StoreConfiguration()
            configuration.freeBytes = { _ in disk.free.withLock { $0 } }
            let store = try SQLiteStore(directory: copy, configuration: configuration)
            try store.renewMark()
            self.fixture = try StreamFixture(store)
        }
    }

    /// Waits until every loop issues cursors of another epoch.
    private func wait(for fixture: StreamFixture, after epoch: EpochID) async throws {
        try await eventually("another epoch has begun") { fixture.cursors.epoch != epoch }
        for loop in fixture.loops.all { try await loop.loop.submit {}.get() }
    }

    @Test func `who resumed before the proof is told`() async throws {
        let loss = try await Loss()
        let fixture = loss.fixture
        let epoch = fixture.cursors.epoch
        let reader = try await fixture.open(try fixture.admit("tablet", since: loss.early), on: 1)
        let polled = try await fixture.poll(
            try fixture.admit("tablet", since: loss.early, stream: false))
        #expect(polled.stale == [])
        #expect(try await reader.said().stale == [])
        let resumed = try #require(try await reader.said().id)

        let proof = try await fixture.poll(
            try fixture.admit("phone", since: loss.late[1], stream: false))
        #expect(proof.stale == ["all"])
        try await wait(for: fixture, after: epoch)
        #expect(try await reader.said().stale == ["all"])
        for cursor in [loss.early, polled.cursor, resumed] {
            let again = try await fixture.poll(
                try fixture.admit("tablet", since: cursor, stream: false))
            #expect(again.stale == ["all"])
        }
        // Cursors issued from here on are valid.
        let told = try #require(try await reader.said().id)
        for cursor in [told, proof.cursor] {
            let next = try await fixture.poll(
                try fixture.admit("tablet", since: cursor, stream: false))
            #expect(next.stale == [])
        }
        try await fixture.change("Character", "panda")
        #expect(try await reader.said().stale == ["all", "detail panda"])
        try await fixture.stop()
    }

    @Test func `a cursor that was judged before the proof is worth nothing after it`() async throws
    {
        let loss = try await Loss()
        let fixture = loss.fixture
        let epoch = fixture.cursors.epoch
        let stream = try fixture.admit("tablet", since: loss.early)
        let poll = try fixture.admit("tablet", since: loss.early, stream: false)
        _ = try fixture.admit("phone", since: loss.late[0], stream: false)
        try await wait(for: fixture, after: epoch)
        let reader = try await fixture.open(stream)
        #expect(try await reader.said().stale == ["all"])
        #expect(try await fixture.poll(poll).stale == ["all"])
        try await fixture.stop()
    }

    @Test func `one loss opens one epoch, however often it is proved`() async throws {
        let loss = try await Loss()
        var fixture = loss.fixture
        let epoch = fixture.cursors.epoch
        for _ in 0..<100 {
            for cursor in loss.late {
                let answer = try await fixture.poll(
                    try fixture.admit("phone", since: cursor, stream: false))
                #expect(answer.stale == ["all"])
            }
        }
        try await wait(for: fixture, after: epoch)
        #expect(try fixture.store.epochs().filter { !$0.isVoid }.count == 1)
        #expect(fixture.cursors.aheadCount == 1)
        let holds = fixture.cursors.text(fixture.store.head)
        // The loss is not proved again after a restart.
        try await fixture.stop()
        fixture = try StreamFixture(try SQLiteStore(directory: loss.data))
        for cursor in loss.late + [loss.early] {
            let answer = try await fixture.poll(
                try fixture.admit("phone", since: cursor, stream: false))
            #expect(answer.stale == ["all"])
        }
        #expect(fixture.cursors.aheadCount == 0)
        let answer = try await fixture.poll(
            try fixture.admit("phone", since: holds, stream: false))
        #expect(answer.stale == [])
        try await fixture.stop()
    }

    @Test func `a full disk delays the epoch and nobody who has to be told`() async throws {
        let loss = try await Loss()
        var fixture = loss.fixture
        let epoch = fixture.cursors.epoch
        let reader = try await fixture.open(try fixture.admit("tablet", since: loss.early))
        loss.disk.fill()
        _ = try fixture.admit("phone", since: loss.late[1], stream: false)
        try await wait(for: fixture, after: epoch)
        #expect(try await reader.said().stale == ["all"])
        let holds = try #require(try await reader.said().id)
        #expect(try fixture.store.epochs().allSatisfy { !$0.isVoid })
        loss.disk.clear()
        try await eventually("voided") { try fixture.store.epochs().contains { $0.isVoid } }
        #expect(try await reader.said().stale == ["all"])
        try await fixture.stop()
        fixture = try StreamFixture(try SQLiteStore(directory: loss.data))
        for (cursor, stale) in [(loss.early, ["all"]), (loss.late[1], ["all"]), (holds, [])] {
            let answer = try await fixture.poll(
                try fixture.admit("tablet", since: cursor, stream: false))
            #expect(answer.stale == stale)
        }
        #expect(fixture.cursors.aheadCount == 0)
        try await fixture.stop()
    }

    /// The cursors issued after the proof belong to an epoch that the restarted gateway does not
    /// know; the first of them proves the loss again.
    @Test func `a gateway that ends before the epoch is written finds the loss again`() async throws
    {
        let loss = try await Loss()
        var fixture = loss.fixture
        let before = fixture.cursors.epoch
        loss.disk.fill()
        let proof = try await fixture.poll(
            try fixture.admit("phone", since: loss.late[1], stream: false))
        #expect(proof.stale == ["all"])
        try await wait(for: fixture, after: before)
        try await fixture.stop()

        fixture = try StreamFixture(try SQLiteStore(directory: loss.data))
        let epoch = fixture.cursors.epoch
        let reader = try await fixture.open(try fixture.admit("tablet", since: loss.early))
        #expect(try await reader.said().stale == [])
        let answer = try await fixture.poll(
            try fixture.admit("phone", since: proof.cursor, stream: false))
        #expect(answer.stale == ["all"])
        try await wait(for: fixture, after: epoch)
        #expect(try await reader.said().stale == ["all"])
        let again = try await fixture.poll(
            try fixture.admit("tablet", since: loss.early, stream: false))
        #expect(again.stale == ["all"])
        try await fixture.stop()
    }
}
