import GatewayCore
import GatewayOperations
import GatewayStorage
import Testing
import WidgetModel

@testable import GatewayEngine

/// Recommendation sets without owed changes are confirmed as time passes; the set confirmed must
/// still be the one that was checked.
@Suite struct UnowedSetsTests {
    private static let key = StreamFixture.key("phone")

    /// Runs `body` with a client whose set of pandas was built before an owl and a fox changed.
    private func fixture(
        _ body: (StreamFixture, _ cursor: String) async throws -> Void
    ) async throws {
        let fixture = try StreamFixture()
        try await fixture.putCatalog()
        let cursor = try await fixture.register("phone")
        _ = try await fixture.engine.clients.register(
            Self.key, .patch(["recommendations": .array([Self.set("panda", builtAt: cursor)])]),
            by: .backend)
        try await fixture.change("Character", "owl")
        try await fixture.change("Character", "fox")
        try await body(fixture, cursor)
        try await fixture.stop()
    }

    private static func set(_ character: String, builtAt cursor: String) -> JSONValue {
        [
            "kind": "detail", "builtAt": .string(cursor),
            "items": [["parameters": ["character": .string(character)], "description": "One"]],
        ]
    }

    /// Registers a set of owls built at position 1, without taking turns with other writers.
    private func registerOwls(in fixture: StreamFixture) async throws {
        let row = try await fixture.store.registration(app: Self.key.app, client: Self.key.client)
        var stored = try StoredRegistration(try #require(row).payload, limits: .none)
        stored.registration.recommendations = [
            RecommendationSet(
                kind: "detail",
                items: [.init(parameters: ["character": .single("owl")], description: "One")])
        ]
        let (payload, record) = (stored.payload, stored.record(of: Self.key.client))
        let registry = fixture.engine.registry
        _ = try await fixture.engine.log.write(for: .gateway, cost: 0) { transaction in
            _ = try transaction.putRegistration(
                app: Self.key.app, client: Self.key.client, payload: payload, attributes: [:],
                updatedAt: 0)
            transaction.afterCommit {
                registry.put(record, app: Self.key.app, at: fixture.store.head)
            }
        }
    }

    private func confirmed(_ fixture: StreamFixture) -> UInt64? {
        fixture.engine.registry.record(Self.key)?.confirmed["detail"]
    }

    @Test func `a set that nothing is owed of is confirmed up to the shard's position`()
        async throws
    {
        try await fixture { fixture, _ in
            #expect(confirmed(fixture) == 1)
            try await fixture.engine.clients.confirmUnowed(below: 3)
            #expect(confirmed(fixture) == 3)
        }
    }

    /// Many clients that never acknowledge what they are owed must not keep others out.
    @Test func `every quiet set is confirmed, however many others are owed`() async throws {
        try await fixture { fixture, cursor in
            let (clients, registry) = (fixture.engine.clients, fixture.engine.registry)
            let owed = (0..<800).map { StreamFixture.key("owed\($0)") }
            let quiet = (0..<20).map { StreamFixture.key("quiet\($0)") }
            for (keys, character) in [(owed, "owl"), (quiet, "panda")] {
                for key in keys {
                    _ = try await clients.register(
                        key,
                        .document([
                            "platform": "iOS",
                            "recommendations": .array([Self.set(character, builtAt: cursor)]),
                        ]), by: .backend)
                }
            }
            try await clients.confirmUnowed(below: 3)
            #expect(quiet.allSatisfy { registry.record($0)?.confirmed["detail"] == 3 })
            #expect(owed.allSatisfy { registry.record($0)?.confirmed["detail"] == 1 })
        }
    }

    @Test func `a registration that says nothing new of a set takes back no acknowledgement`()
        async throws
    {
        try await fixture { fixture, cursor in
            let clients = fixture.engine.clients
            let same: JSONValue = .array([Self.set("panda", builtAt: cursor)])
            try await clients.acknowledge(
                Self.key, at: 3, in: fixture.cursors.epoch, recommendations: ["detail"],
                rebuilt: [])
            let inputs: [RegistrationInput] = [
                .patch([:]), .patch(["osVersion": "26"]),
                .patch(["delivery": [["type": "stream"]]]), .patch(["recommendations": same]),
                .document(["platform": "iOS", "recommendations": same]),
            ]
            for input in inputs {
                _ = try await clients.register(Self.key, input, by: .backend)
                #expect(confirmed(fixture) == 3)
            }
        }
    }

    @Test func `other items that were built at the same cursor are owed what came after it`()
        async throws
    {
        try await fixture { fixture, cursor in
            let clients = fixture.engine.clients
            func register(_ character: String, builtAt cursor: String) async throws {
                _ = try await clients.register(
                    Self.key,
                    .patch(["recommendations": .array([Self.set(character, builtAt: cursor)])]),
                    by: .backend)
            }
            try await clients.acknowledge(
                Self.key, at: 3, in: fixture.cursors.epoch, recommendations: ["detail"],
                rebuilt: [])
            try await register("owl", builtAt: cursor)
            #expect(confirmed(fixture) == 1)
            let admitted = try fixture.admit("phone", since: fixture.cursors.text(3), stream: false)
            #expect(try await fixture.poll(admitted).stale == ["detail"])
            try await register("owl", builtAt: fixture.cursors.text(3))
            #expect(confirmed(fixture) == 3)
            #expect(try await fixture.poll(admitted).stale == [])
        }
    }

    @Test func `a set that is registered after the one before was found quiet stays owed`()
        async throws
    {
        try await fixture { fixture, _ in
            let clients = fixture.engine.clients
            // Only a writer that does not take turns can replace the registration meanwhile.
            #expect(await clients.locks.lock(Self.key))
            async let isOver: Void = clients.confirmUnowed(below: 3)
            while clients.locks.waitingCount(Self.key) == 0 { await Task.yield() }
            try await registerOwls(in: fixture)
            clients.locks.unlock(Self.key)
            try await isOver
            #expect(confirmed(fixture) == 1)
            let admitted = try fixture.admit("phone", since: fixture.cursors.text(3), stream: false)
            #expect(try await fixture.poll(admitted).stale == ["detail"])
        }
    }

    @Test func `a set is judged again where its registration changes before that is stored`()
        async throws
    {
        try await fixture { fixture, _ in
            var judged: [ParameterValue?] = []
            let isRegistered = try await fixture.engine.clients.confirm(Self.key) { record in
                let items = record.registration.recommendations.first?.items
                judged.append(items?.first?.parameters["character"])
                guard judged.count == 1 else { return nil }
                try await registerOwls(in: fixture)
                return (["detail"], 3)
            }
            #expect(isRegistered && judged == [.single("panda"), .single("owl")])
            #expect(confirmed(fixture) == 1)
        }
    }

    @Test func `a client that is removed meanwhile holds up no other`() async throws {
        try await fixture { fixture, _ in
            let clients = fixture.engine.clients
            #expect(await clients.locks.lock(Self.key))
            async let isOver: Void = clients.confirmUnowed(below: 3)
            while clients.locks.waitingCount(Self.key) == 0 { await Task.yield() }
            try await clients.remove(Self.key)
            clients.locks.unlock(Self.key)
            try await isOver
            #expect(confirmed(fixture) == nil)
        }
    }
}
