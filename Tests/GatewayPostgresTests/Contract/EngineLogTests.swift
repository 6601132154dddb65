import ClusterTestSupport
import GatewayCore
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayPostgres
@testable import GatewayRecords

/// The contract of the log and the registrations, the same over every store.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct EngineLogTests {
    private func engine(
        _ kind: StoreKind, _ body: (EngineFixture) async throws -> Void
    ) async throws {
        let engine = try await EngineFixture.start(kind)
        try await engine.put(["hero"])
        try await body(engine)
        try await engine.stop()
    }

    private func expect(
        _ code: String, _ body: () async throws -> Void,
        at location: SourceLocation = #_sourceLocation
    ) async {
        let error = await #expect(throws: EngineError.self, sourceLocation: location) {
            try await body()
        }
        #expect(error?.code == code, sourceLocation: location)
    }

    // MARK: Changes

    @Test(arguments: StoreKind.allCases)
    func `an event counts once, in a post and after it`(_ kind: StoreKind) async throws {
        try await engine(kind) { engine in
            let first = try await engine.changes.post(
                [EngineFixture.event("a"), EngineFixture.event("b"), EngineFixture.event("a")],
                app: EngineFixture.app)
            #expect((first.accepted, first.duplicates, first.sequence) == (2, 1, 3))
            let again = try await engine.changes.post(
                [EngineFixture.event("b")], app: EngineFixture.app)
            #expect((again.accepted, again.duplicates, again.sequence) == (0, 1, 3))
            let mixed = try await engine.changes.post(
                [EngineFixture.event("b"), EngineFixture.event("c")], app: EngineFixture.app)
            #expect((mixed.accepted, mixed.duplicates, mixed.sequence) == (1, 1, 4))
            #expect(engine.log.head == 4)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a post with another event's id is refused whole`(_ kind: StoreKind) async throws {
        try await engine(kind) { engine in
            _ = try await engine.changes.post([EngineFixture.event("a")], app: EngineFixture.app)
            for post in [
                [EngineFixture.event("c"), EngineFixture.event("a", health: "2")],
                [EngineFixture.event("c"), EngineFixture.event("c", health: "2")],
            ] {
                await expect("event-id-reused") {
                    _ = try await engine.changes.post(post, app: EngineFixture.app)
                }
            }
            #expect(engine.log.head == 2)
            // The other event of the refused post is not known.
            let fresh = try await engine.changes.post(
                [EngineFixture.event("c")], app: EngineFixture.app)
            #expect((fresh.accepted, fresh.sequence) == (1, 3))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `every loop has applied what was answered`(_ kind: StoreKind) async throws {
        try await engine(kind) { engine in
            var last: UInt64 = 1
            for number in 0..<20 {
                let outcome = try await engine.changes.post(
                    [EngineFixture.event("\(number)")], app: EngineFixture.app)
                #expect(outcome.sequence == last + 1)
                last = outcome.sequence
                try await engine.reached(last)
            }
            #expect(engine.log.head == last)
            #expect(engine.changes.accepted.time(of: last) != nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `changes and reloads of an unknown app are refused`(_ kind: StoreKind) async throws {
        try await engine(kind) { engine in
            await expect("unknown-app") {
                _ = try await engine.changes.post([EngineFixture.event("a")], app: "other")
            }
            await expect("unknown-app") {
                _ = try await engine.changes.reload(.everything, app: "other")
            }
            await expect("unknown-app") { _ = try await engine.changes.removeApp("other") }
            #expect(engine.log.head == 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an operator reloads what exists`(_ kind: StoreKind) async throws {
        try await engine(kind) { engine in
            _ = try await engine.register("phone")
            let head = engine.log.head
            let scopes: [ReloadScope] = [.everything, .kind("hero"), .client("phone")]
            for (index, scope) in scopes.enumerated() {
                let sequence = try await engine.changes.reload(scope, app: EngineFixture.app)
                #expect(sequence == head + 1 + UInt64(index))
            }
            await expect("invalid") {
                _ = try await engine.changes.reload(.kind("villain"), app: EngineFixture.app)
            }
            await expect("unknown-client") {
                _ = try await engine.changes.reload(.client("tablet"), app: EngineFixture.app)
            }
        }
    }

    // MARK: Catalogs

    @Test(arguments: StoreKind.allCases)
    func `a catalog is put under a condition and once`(_ kind: StoreKind) async throws {
        try await engine(kind) { engine in
            let again = try await engine.put(["hero"], .match(["*"]))
            #expect(!again.isNew && again.document.sequence == 1)
            await expect("precondition-failed") {
                _ = try await engine.put(["villain"], .absent)
            }
            let next = try await engine.put(
                ["villain"], .match([again.document.etag]))
            #expect(!next.isNew && next.document.sequence == 2)
            await expect("precondition-failed") {
                _ = try await engine.put(["hero"], .match([again.document.etag]))
            }
            #expect(engine.catalogs.document(of: EngineFixture.app)?.etag == next.document.etag)
            #expect(engine.catalogs.ruleSet(of: EngineFixture.app)?.since(kind: "villain") == 2)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `catalogs that are put at once come into force one after the other`(
        _ kind: StoreKind
    ) async throws {
        try await engine(kind) { engine in
            let sequences = try await withThrowingTaskGroup(of: UInt64.self) { group in
                for number in 0..<4 {
                    group.addTask {
                        try await engine.put(["kind\(number)"]).document.sequence
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(sequences.sorted() == [2, 3, 4, 5])
            #expect(engine.catalogs.document(of: EngineFixture.app)?.sequence == 5)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an app that is removed has nothing, and its next catalog is a first one`(
        _ kind: StoreKind
    ) async throws {
        try await engine(kind) { engine in
            _ = try await engine.changes.post([EngineFixture.event("a")], app: EngineFixture.app)
            _ = try await engine.register("phone")
            let removal = try await engine.changes.removeApp(EngineFixture.app)
            #expect(removal.clients == 1 && removal.sequence == engine.log.head)
            #expect(engine.catalogs.document(of: EngineFixture.app) == nil)
            #expect(engine.registry.count == 0)
            await expect("unknown-app") {
                _ = try await engine.changes.post(
                    [EngineFixture.event("a")], app: EngineFixture.app)
            }
            let next = try await engine.put(["hero"])
            #expect(next.isNew && next.document.sequence == removal.sequence + 1)
            // An event of the time before is another one.
            let outcome = try await engine.changes.post(
                [EngineFixture.event("a")], app: EngineFixture.app)
            #expect((outcome.accepted, outcome.duplicates) == (1, 0))
            #expect(try await engine.register("phone").isNew)
        }
    }

    // MARK: Registrations

    @Test(arguments: StoreKind.allCases)
    func `a registration is in force from its position`(_ kind: StoreKind) async throws {
        try await engine(kind) { engine in
            let key = ClientKey(app: EngineFixture.app, client: "phone")
            let first = try await engine.register("phone")
            #expect(first.isNew && first.position == engine.log.head)
            let again = try await engine.register("phone", hero: "owl")
            #expect(!again.isNew && again.position >= first.position)
            #expect(engine.registry.record(key)?.attributes["hero"] == ["owl"])
            let version = try #require(try await engine.log.registration(key))
            let stored = try StoredRegistration(version.payload, limits: Limits())
            #expect(stored.attributes.backend["hero"] == ["owl"])
            #expect(try await engine.log.remove(key))
            #expect(try await !engine.log.remove(key))
            #expect(try await engine.log.registration(key) == nil)
            #expect(engine.registry.record(key) == nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a registration made from another one is not stored`(_ kind: StoreKind) async throws {
        try await engine(kind) { engine in
            let key = ClientKey(app: EngineFixture.app, client: "phone")
            _ = try await engine.register("phone")
            let old = try await engine.log.registration(key)
            _ = try await engine.register("phone", hero: "owl")
            let present = try await engine.log.registration(key)
            let base = try RegistrationBase(
                version: old, ruleSet: engine.catalogs.ruleSet(of: EngineFixture.app))
            let stored = try #require(base.stored)
            for base in [base, try RegistrationBase(version: nil, ruleSet: base.ruleSet)] {
                let outcome = try await engine.log.put(
                    RegistrationUpdate(
                        key: key,
                        replacement: RegistrationReplacement(
                            stored, stored.record(of: key.client)),
                        base: base, confirms: false, isSeen: true))
                guard case .outdated(let current) = outcome else {
                    Issue.record("stored")
                    return
                }
                #expect(current == present)
            }
            #expect(try await engine.log.registration(key) == present)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `patches of one client at once are all kept`(_ kind: StoreKind) async throws {
        try await engine(kind) { engine in
            let key = ClientKey(app: EngineFixture.app, client: "phone")
            _ = try await engine.register("phone")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        _ = try await engine.clients.register(
                            key, .patch(["attributes": ["n\(number)": "x"]]), by: .backend)
                    }
                }
                try await group.waitForAll()
            }
            let attributes = engine.registry.record(key)?.attributes ?? [:]
            #expect(attributes.count == 9)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `clients with an attribute are erased, and no others`(_ kind: StoreKind) async throws {
        try await engine(kind) { engine in
            for number in 0..<12 {
                _ = try await engine.register(
                    "c\(number)", hero: number % 3 == 0 ? "owl" : "panda")
            }
            let erased = try await engine.clients.erase(
                app: EngineFixture.app, attribute: (name: "hero", value: "owl"))
            #expect(erased == 4 && engine.registry.count == 8)
            let again = try await engine.clients.erase(
                app: EngineFixture.app, attribute: (name: "hero", value: "owl"))
            #expect(again == 0)
        }
    }
}
