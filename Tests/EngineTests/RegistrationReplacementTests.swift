import Foundation
import GatewayCore
import GatewayDelivery
import GatewayServer
import GatewayStorage
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayOperations

/// Registrations are made outside the log's writer, and stored only if nothing has changed
/// meanwhile.
@Suite struct RegistrationReplacementTests {
    private static let key = ClientKey(app: "com.game", client: "phone")

    private static func engine() async throws -> Engine {
        let engine = try Engine.test(
            .test(), store: SQLiteStore(inMemory: StoreConfiguration()))
        try await put(["hero"], in: engine)
        return engine
    }

    private static func put(_ kinds: [String], in engine: Engine) async throws {
        let widgets = kinds.map {
            "{ kind: \($0), configuration: static, families: [systemSmall] }"
        }
        try await engine.putCatalog(
            "app: com.game\nwidgets: [\(widgets.joined(separator: ", "))]", app: "com.game")
    }

    private static func document(_ kinds: [String]) -> JSONValue {
        [
            "platform": "iOS",
            "widgets": .array(
                kinds.map { ["kind": .string($0), "family": "systemSmall"] }),
        ]
    }

    @Test func `a registration made by an older catalog is made again`() async throws {
        let engine = try await Self.engine()
        _ = try await engine.clients.register(Self.key, .document(Self.document([])), by: .backend)
        var rules: [UInt64] = []
        let stored = try await engine.clients.replaceRegistration(of: Self.key) { base in
            rules.append(base.ruleSet?.sequence ?? 0)
            if rules.count <= 3 { try await Self.put(["kind\(rules.count)"], in: engine) }
            let stored = try #require(base.stored)
            return RegistrationReplacement(stored, stored.record(of: Self.key.client))
        }
        #expect(stored?.isNew == false && rules == [1, 2, 3, 4])
    }

    @Test func `a registration that is replaced meanwhile is the base of the next attempt`()
        async throws
    {
        let engine = try await Self.engine()
        var bases: [Int?] = []
        let stored = try await engine.clients.replaceRegistration(of: Self.key) { base in
            bases.append(base.stored?.registration.widgets.count)
            var stored = try StoredRegistration(
                registration: ClientRegistration.read(
                    Self.document(["hero"]), limits: Limits()
                ).registration)
            if bases.count == 1 {
                // A writer that does not take turns.
                let payload = stored.payload
                _ = try await engine.log.write(for: .gateway, cost: 0) { transaction in
                    try transaction.putRegistration(
                        app: Self.key.app, client: Self.key.client, payload: payload,
                        attributes: [:], updatedAt: 0)
                }
            }
            stored.since = 7
            return RegistrationReplacement(stored, stored.record(of: Self.key.client))
        }
        #expect(bases == [nil, 1] && stored?.isNew == false)
    }

    @Test func `attempts at a registration that keeps changing end with 503`() async throws {
        let engine = try await Self.engine()
        var attempts = 0
        await #expect(throws: EngineError.self) {
            _ = try await engine.clients.replaceRegistration(of: Self.key) { _ in
                attempts += 1
                try await Self.put(["kind\(attempts)"], in: engine)
                let stored = StoredRegistration(
                    registration: ClientRegistration(platform: "iOS"))
                return RegistrationReplacement(stored, stored.record(of: Self.key.client))
            }
        }
        #expect(attempts == ClientDirectory.replacementAttemptsMax)
        #expect(engine.registry.record(Self.key) == nil)
    }

    @Test func `patches of one client wait for each other and none is lost`() async throws {
        let engine = try await Self.engine()
        _ = try await engine.clients.register(
            Self.key, .document(["platform": "iOS"]), by: .backend)
        let count = 40
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                group.addTask {
                    _ = try await engine.clients.register(
                        Self.key, .patch(["attributes": ["a\(number % 20)": .string("\(number)")]]),
                        by: .backend)
                }
            }
            try await group.waitForAll()
        }
        #expect(engine.registry.record(Self.key)?.attributes.count == 20)
    }

    @Test func `warnings are listed up to a bound and counted beyond it`() async throws {
        let engine = try await Self.engine()
        let kinds = (0..<Faults.keptMax + 50).map { "her\($0)" }
        let outcome = try await engine.clients.register(
            Self.key, .document(Self.document(kinds)), by: .backend)
        #expect(outcome.warnings.count == kinds.count)
        #expect(outcome.warnings.list.count == Faults.keptMax)
        #expect(outcome.warnings.list[0].message.hasSuffix("did you mean `hero`?"))
    }
}
