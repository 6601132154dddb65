import CatalogModel
import Foundation
import GatewayOperations
import GatewayStorage
import GatewayTestSupport
import NIOCore
import Testing
import WidgetModel

@testable import GatewayCore
@testable import GatewayEngine

/// The log without a process, with a clock that stands still.
@Suite struct ChangeLogTests {
    private let clock = HeldClock()

    private func event(_ id: String, health: String = "1") -> CloudEvent {
        CloudEvent(
            source: "test", id: id,
            change: Change(entity: "Character", id: "panda", attributes: ["health": [health]]))
    }

    @Test func `entries are accepted at the time of the clock`() async throws {
        try await StreamFixture.running([], clock: clock.gateway) { fixture, _ in
            let accepted = clock.wall
            let first = try await fixture.change("Character", "panda")
            clock.advance(to: clock.now + 5_000)
            let second = try await fixture.engine.changes.reload(
                .everything, app: StreamFixture.app)
            #expect(try await fixture.store.logRow(first)?.acceptedAt == accepted)
            #expect(try await fixture.store.logRow(second)?.acceptedAt == accepted + 5_000)
            #expect(fixture.engine.changes.accepted.time(of: first) == accepted)
            #expect(fixture.engine.changes.accepted.time(of: second) == accepted + 5_000)
        }
    }

    /// Every loop adopts them, behind the entries that they follow from, and answers as before.
    @Test(.timeLimit(.minutes(30))) func `versions are sealed once for all loops`() async throws {
        try await StreamFixture.running([], clock: clock.gateway) { fixture, _ in
            for animal in ["panda", "owl", "fox"] {
                _ = try await fixture.change("Character", animal)
            }
            for loop in fixture.loops.all {
                var sealedUpTo: UInt64 = 0
                while sealedUpTo == 0 {
                    await Task.yield()
                    sealedUpTo = try await loop.loop.submit {
                        loop.shard.apps.first?.versions.sealedUpTo ?? 0
                    }.get()
                }
                #expect(sealedUpTo <= fixture.store.head)
            }
        }
    }

    @Test func `an event counts once, in a post and after it`() async throws {
        try await StreamFixture.running([], clock: clock.gateway) { fixture, _ in
            let changes = fixture.engine.changes
            let outcome = try await changes.post(
                [event("a"), event("b"), event("a")], app: StreamFixture.app)
            #expect((outcome.accepted, outcome.duplicates, outcome.sequence) == (2, 1, 3))
            let again = try await changes.post([event("b")], app: StreamFixture.app)
            #expect((again.accepted, again.duplicates, again.sequence) == (0, 1, 3))
        }
    }

    @Test func `a post with another event's id is refused whole`() async throws {
        try await StreamFixture.running([], clock: clock.gateway) { fixture, _ in
            let changes = fixture.engine.changes
            _ = try await changes.post([event("a")], app: StreamFixture.app)
            for post in [
                [event("c"), event("a", health: "2")], [event("c"), event("c", health: "2")],
            ] {
                let error = await #expect(throws: EngineError.self) {
                    try await changes.post(post, app: StreamFixture.app)
                }
                #expect(error?.code == "event-id-reused")
            }
            #expect(fixture.store.head == 2)
        }
    }

    @Test func `changes and reloads of an unknown app are refused`() async throws {
        try await StreamFixture.running([], clock: clock.gateway) { fixture, _ in
            let changes = fixture.engine.changes
            for refused in [
                { _ = try await changes.post([self.event("a")], app: "other") },
                { _ = try await changes.reload(.everything, app: "other") },
                { _ = try await changes.log.removeApp("other") },
            ] as [@Sendable () async throws -> Void] {
                let error = await #expect(throws: EngineError.self) { try await refused() }
                #expect(error?.code == "unknown-app")
            }
        }
    }

    @Test func `a catalog is put under a condition and once`() async throws {
        try await StreamFixture.running([], clock: clock.gateway) { fixture, _ in
            let changes = fixture.engine.changes
            let body = Array(StreamFixture.catalog.utf8)
            let catalog = try Catalog(
                JSONValue(yaml: StreamFixture.catalog), app: StreamFixture.app, limits: Limits())
            let again = try await changes.putCatalog(
                catalog, contentType: "application/yaml", body: body, .match(["*"]))
            #expect(!again.isNew && again.document.sequence == 1)
            let error = await #expect(throws: EngineError.self) {
                try await changes.putCatalog(
                    catalog, contentType: "application/yaml", body: body, .absent)
            }
            #expect(error?.code == "precondition-failed")
        }
    }

    @Test func `an app that is removed has nothing, and its next catalog is a first one`()
        async throws
    {
        try await StreamFixture.running([], clock: clock.gateway) { fixture, _ in
            try await fixture.register("phone")
            let removal = try await fixture.engine.log.removeApp(StreamFixture.app)
            #expect((removal.sequence, removal.clients) == (2, 1))
            #expect(fixture.engine.catalogs.document(of: StreamFixture.app) == nil)
            #expect(fixture.engine.catalogs.removal(of: StreamFixture.app) == 2)
            #expect(fixture.engine.registry.count == 0)
            try await fixture.putCatalog()
            #expect(fixture.engine.catalogs.ruleSet(of: StreamFixture.app)?.sequence == 3)
        }
    }

    /// A disk fails the transaction like this after the catalog was staged.
    @Test func `a catalog whose transaction fails is not in force for the next job`() async throws {
        struct Full: Error {}
        try await StreamFixture.running([], clock: clock.gateway) { fixture, _ in
            let catalogs = fixture.engine.catalogs
            await #expect(throws: Full.self) {
                try await fixture.engine.log.write(for: .gateway, cost: 1) {
                    transaction -> Void in
                    catalogs.stage(at: transaction.nextSequence) {
                        $0.remove(app: StreamFixture.app, at: 2)
                    }
                    throw Full()
                }
            }
            let entry = try await fixture.engine.log.write(for: .gateway, cost: 1) {
                catalogs.entry(of: StreamFixture.app, before: $0.nextSequence)
            }
            #expect(entry.document?.sequence == 1 && entry.removal == 0)
            #expect(try await fixture.change("Character", "panda") == 2)
        }
    }
}
