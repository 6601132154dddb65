import Foundation
import GatewayCore
import GatewayDelivery
import GatewayStorage
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayOperations
@testable import GatewayServer

/// The quotas of apps hold for concurrent jobs, and each start counts the usage again.
@Suite struct AppQuotaTests {
    private static let app = "com.game"

    private static func configuration(
        clients: Int = 1_000, logBytes: Int = 1 << 20
    ) throws -> GatewayConfiguration {
        var configuration = try GatewayConfiguration.test()
        configuration.quota.clientsMax = clients
        configuration.quota.logBytesMax = logBytes
        return configuration
    }

    private static func put(_ app: String = app, title: String = "", in engine: Engine)
        async throws
    {
        let body = """
            app: \(app)
            entities: { Hero: { properties: [health] } }
            widgets: [{ kind: hero, configuration: static, families: [systemSmall] }]
            # \(title)
            """
        try await engine.putCatalog(body, app: app)
    }

    private static func register(
        _ client: String, app: String = app, in engine: Engine
    ) async throws {
        _ = try await engine.clients.register(
            ClientKey(app: app, client: client), .document(["platform": "iOS"]), by: .backend)
    }

    private static func post(
        _ ids: [String], app: String = app, bytes: Int = 0, in engine: Engine
    ) async throws -> PostOutcome {
        let attributes = ["note": [String(repeating: "x", count: bytes)]]
        let events = ids.map {
            CloudEvent(
                source: "test", id: $0, change: Change(entity: "Hero", attributes: attributes))
        }
        return try await engine.changes.post(events, app: app)
    }

    private static func problem(_ body: () async throws -> Void) async -> ProblemDetails? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? EngineError).map(Problem.engine)
        }
    }

    /// Expects the store's usage to equal the usage that a start would count.
    private static func expectExactUsage(
        _ engine: Engine, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let counted = try LogReplay(
            of: engine.store, limits: Limits(), coreLimits: CoreLimits()
        ).usage
        #expect(engine.store.usage == counted, sourceLocation: sourceLocation)
    }

    @Test func `clients that register together do not pass the limit together`() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        let engine = try Engine.test(Self.configuration(clients: 3), store: store)
        try await Self.put(in: engine)
        let problems = await withTaskGroup(of: ProblemDetails?.self) { group in
            for number in 0..<20 {
                group.addTask {
                    await Self.problem {
                        try await Self.register("client\(number)", in: engine)
                    }
                }
            }
            var problems: [ProblemDetails] = []
            for await case let problem? in group { problems.append(problem) }
            return problems
        }
        #expect(problems.count == 17)
        #expect(problems.allSatisfy { $0.status == 422 && $0.code == "too-many-clients" })
        #expect(problems.first?.faults.first?.message.contains("limits.clientsPerApp") == true)
        #expect(engine.registry.count == 3)
        #expect(store.usage[Self.app].clients == 3)
        try Self.expectExactUsage(engine)
    }

    @Test func `who is registered may register again, also where the limit was lowered since`()
        async throws
    {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        let before = try Engine.test(Self.configuration(), store: store)
        try await Self.put(in: before)
        for client in ["a", "b", "c"] { try await Self.register(client, in: before) }
        let engine = try Engine.test(Self.configuration(clients: 2), store: store)
        try await Self.register("a", in: engine)
        _ = try await engine.clients.register(
            ClientKey(app: Self.app, client: "b"), .patch(["osVersion": "26"]), by: .backend)
        func isRefused(_ client: String) async -> Bool {
            await Self.problem { try await Self.register(client, in: engine) }?.code
                == "too-many-clients"
        }
        #expect(await isRefused("d"))
        try await engine.clients.remove(ClientKey(app: Self.app, client: "c"))
        #expect(await isRefused("d"))
        try await engine.clients.remove(ClientKey(app: Self.app, client: "b"))
        try await Self.register("d", in: engine)
        #expect(await isRefused("e"))
        // Another app has its own quota.
        try await Self.put("com.other", in: engine)
        try await Self.register("d", app: "com.other", in: engine)
        #expect(store.usage["com.other"].clients == 1)
        try Self.expectExactUsage(engine)
    }

    @Test func `clients that are erased or unseen or whose app goes make room`() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        let engine = try Engine.test(Self.configuration(clients: 2), store: store)
        try await Self.put(in: engine)
        func fill() async throws {
            try await Self.register("a", in: engine)
            _ = try await engine.clients.register(
                ClientKey(app: Self.app, client: "b"),
                .document(["platform": "iOS", "attributes": ["account": "42"]]), by: .backend)
            #expect(
                await Self.problem { try await Self.register("c", in: engine) }?.status == 422)
        }
        try await fill()
        #expect(
            try await engine.clients.erase(app: Self.app, attribute: (name: "account", value: "42"))
                == 1
        )
        #expect(store.usage[Self.app].clients == 1)
        try await fill()
        #expect(try await engine.clients.removeUnseen(since: .max) == false)
        #expect(store.usage[Self.app].clients == 0)
        try await fill()
        #expect(try await engine.log.removeApp(Self.app).clients == 2)
        #expect(store.usage[Self.app].clients == 0)
        try await Self.put(in: engine)
        try await fill()
        try Self.expectExactUsage(engine)
    }

    @Test func `posts are refused whole at the limit, until retention makes room`() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        let engine = try Engine.test(Self.configuration(logBytes: 4_000), store: store)
        try await Self.put(in: engine)
        try await Self.put("com.other", in: engine)
        var posted = 0
        var refusal: ProblemDetails?
        while refusal == nil, posted < 100 {
            refusal = await Self.problem {
                _ = try await Self.post(["\(posted)"], bytes: 200, in: engine)
            }
            if refusal == nil { posted += 1 }
        }
        #expect(posted > 5 && posted < 20)
        #expect(refusal?.status == 429 && refusal?.code == "log-full")
        #expect(refusal?.retryAfter == 60)
        #expect(refusal?.detail?.contains("limits.logBytesPerApp") == true)
        let (head, used) = (store.head, store.usage[Self.app].logBytes)
        #expect(used <= 4_000)
        // A batch is rejected whole, even if one of its events would still fit.
        #expect(
            await Self.problem {
                _ = try await Self.post(["x", "y", "z"], bytes: 190, in: engine)
            }?.code == "log-full")
        #expect(store.head == head && store.usage[Self.app].logBytes == used)
        // Repeated events add nothing, and other apps are not affected.
        let again = try await Self.post(["0"], bytes: 200, in: engine)
        #expect(again.duplicates == 1)
        _ = try await Self.post(["0"], app: "com.other", bytes: 200, in: engine)
        // A catalog counts as well.
        #expect(
            await Self.problem {
                try await Self.put(title: String(repeating: "x", count: 300), in: engine)
            }?.code == "log-full")
        // An operator's reload is accepted: it makes everything stale.
        _ = try await engine.changes.reload(.everything, app: Self.app)
        try Self.expectExactUsage(engine)

        _ = try await engine.log.write(for: .gateway, cost: 1, freesSpace: true) {
            try $0.prune(acceptedBefore: 0, keepRows: 2, limit: 1_000)
        }
        #expect(store.usage[Self.app].logBytes < 1_000)
        let fresh = try await Self.post(["x", "y", "z"], bytes: 190, in: engine)
        #expect(fresh.accepted == 3)
        try Self.expectExactUsage(engine)

        // The next start counts the same.
        let counted = store.usage
        store.restoreUsage(UsageTable())
        _ = try Engine.test(Self.configuration(), store: store)
        #expect(store.usage == counted)
    }

    @Test func `what could never be taken is told apart from what has to wait`() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        let engine = try Engine.test(Self.configuration(logBytes: 1_000), store: store)
        try await Self.put(in: engine)
        let problem = await Self.problem {
            _ = try await Self.post(["0", "1"], bytes: 600, in: engine)
        }
        #expect(problem?.status == 413 && problem?.retryAfter == nil)
        #expect(problem?.detail?.contains("limits.logBytesPerApp") == true)
    }

    @Test func `posts that come together do not pass the limit together`() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        let engine = try Engine.test(Self.configuration(logBytes: 8_000), store: store)
        try await Self.put(in: engine)
        let accepted = await withTaskGroup(of: Int.self) { group in
            for number in 0..<60 {
                group.addTask {
                    let outcome = try? await Self.post(
                        ["\(number)"], bytes: 250, in: engine)
                    return outcome?.accepted ?? 0
                }
            }
            return await group.reduce(0, +)
        }
        let used = store.usage[Self.app].logBytes
        #expect(accepted > 15 && accepted < 32)
        #expect(used <= 8_000 && used > 7_600)
        try Self.expectExactUsage(engine)
    }
}
