import CatalogModel
import GatewayCore
import GatewaySigning
import GatewayStorage
import GatewayTelemetry
import GatewayTestSupport
import NIOHTTP1
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

/// Registrations and acknowledgements without a process, with a clock that stands still.
@Suite struct ClientDirectoryTests {
    private let clock = HeldClock()
    private let key = StreamFixture.key("phone")

    @Test func `a registration keeps when it began and when it was addressed`() async throws {
        try await StreamFixture.running(clock: clock.gateway) { fixture, _ in
            let (clients, registry) = (fixture.engine.clients, fixture.engine.registry)
            let addressed = clock.wall
            try await fixture.change("Character", "panda")
            clock.advance(to: clock.now + 5_000)
            _ = try await clients.register(
                key, .patch(["attributes": ["account": "2"]]), by: .backend)
            #expect(registry.record(key)?.addressedAt == addressed)
            #expect(registry.record(key)?.since == 1)
            // Apps state these again and again, and no webhook works again by that.
            _ = try await clients.register(
                key, .patch(["activities": [["type": "T", "id": "1"]]]), by: .backend)
            #expect(registry.record(key)?.addressedAt == addressed)
            _ = try await clients.register(
                key, .patch(["delivery": [["type": "stream"]]]), by: .backend)
            #expect(registry.record(key)?.addressedAt == addressed + 5_000)
        }
    }

    @Test func `clients are erased by an attribute, in portions`() async throws {
        try await StreamFixture.running(clock: clock.gateway) { fixture, _ in
            try await fixture.register("tablet", account: "7")
            let clients = fixture.engine.clients
            let erased = try await clients.erase(
                app: StreamFixture.app, attribute: (name: "account", value: "7"))
            #expect(erased == 1 && fixture.engine.registry.count == 1)
            try await clients.remove(key)
            let error = await #expect(throws: EngineError.self) { try await clients.remove(key) }
            #expect(error?.code == "unknown-client")
            #expect(fixture.engine.registry.count == 0)
        }
    }

    @Test func `only a backend registers webhooks, and a client keeps those`() async throws {
        try await StreamFixture.running(clock: clock.gateway) { fixture, _ in
            let clients = fixture.engine.clients
            let webhook: JSONValue = [
                "delivery": [["type": "webhook", "url": "https://a.test/hook"]]
            ]
            let client = Registrar.client(vouched: [:])
            let error = await #expect(throws: EngineError.self) {
                try await clients.register(key, .patch(webhook), by: client)
            }
            #expect(error?.code == "webhook-needs-backend")
            for registrar in [.backend, client] {
                let outcome = try await clients.register(key, .patch(webhook), by: registrar)
                #expect(outcome.hasWebhook)
            }
        }
    }

    @Test func `only a backend registers webhooks of controls`() async throws {
        try await StreamFixture.running(clock: clock.gateway) { fixture, _ in
            let clients = fixture.engine.clients
            let webhook: JSONValue = [
                "controls": [
                    [
                        "kind": "c", "id": "1",
                        "delivery": ["type": "webhook", "url": "https://a.test/hook"],
                    ]
                ]
            ]
            let client = Registrar.client(vouched: [:])
            let error = await #expect(throws: EngineError.self) {
                try await clients.register(key, .patch(webhook), by: client)
            }
            #expect(error?.code == "webhook-needs-backend")
            for registrar in [.backend, client] {
                _ = try await clients.register(key, .patch(webhook), by: registrar)
            }
        }
    }

    @Test func `a source of content that can never be asked is a fault of a new catalog`()
        async throws
    {
        func catalog(_ urls: String...) throws -> Catalog {
            let activities = urls.enumerated().map { place, url -> JSONValue in
                ["type": .string("T\(place)"), "content": ["url": .string(url)]]
            }
            return try Catalog(
                ["app": "app", "widgets": [], "activities": .array(activities)], app: "app",
                limits: Limits())
        }
        try await StreamFixture.running(clock: clock.gateway) { fixture, _ in
            let clients = fixture.engine.clients
            let bad = try catalog("https://a.test/", "https://10.0.0.1/", "https://u@a.test/")
            #expect(
                clients.contentFaults(of: bad, replacing: nil).list.map(\.place)
                    == ["activities[1].content.url", "activities[2].content.url"])
            let known = try catalog("https://10.0.0.1/")
            #expect(
                clients.contentFaults(of: bad, replacing: known).list.map(\.place)
                    == ["activities[2].content.url"])
            clients.permit(webhooks: [try #require(AddressRange("10.0.0.0/8"))])
            #expect(clients.contentFaults(of: bad, replacing: nil).list.count == 1)
        }
    }

    /// Returns a patch with one control for each token.
    private static func controls(_ tokens: Range<Int>) -> RegistrationInput {
        .patch([
            "controls": .array(
                tokens.map {
                    [
                        "kind": "c", "id": .string("\($0)"),
                        "delivery": [
                            "type": "apns", "pushType": "controls",
                            "token": .string(String(0x1000 + $0, radix: 16)),
                        ],
                    ]
                })
        ])
    }

    @Test func `a client has a budget of new push addresses`() async throws {
        try await StreamFixture.running(clock: clock.gateway) { fixture, _ in
            let clients = fixture.engine.clients
            let client = Registrar.client(vouched: [:])
            _ = try await clients.register(key, Self.controls(0..<64), by: client)
            // The same again, fewer, or other parts are no new addresses.
            for _ in 0..<5 {
                _ = try await clients.register(key, Self.controls(0..<64), by: client)
                _ = try await clients.register(
                    key, .patch(["attributes": ["account": "1"]]), by: .backend)
            }
            _ = try await clients.register(key, Self.controls(100..<164), by: client)
            let error = await #expect(throws: EngineError.self) {
                try await clients.register(key, Self.controls(99..<100), by: client)
            }
            guard case .rate(.pushAddresses, let rate, let wait)? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(rate.count == 64 && rate.burst == 128)
            #expect(wait == 86_400_000 / 64)
            let answer = Problem.engine(.rate(.pushAddresses, rate, retryAfter: wait)).answer
            #expect(answer.head.status.code == 429)
            #expect(answer.head.headers["Retry-After"] == ["1350"])
            #expect(answer.head.headers["RateLimit-Policy"] == ["\"push_addresses\";q=64;w=86400"])
            #expect(
                Problem.engine(.rate(.pushAddresses, rate, retryAfter: wait)).detail?
                    .contains("`rates.pushAddresses`") == true)
            // Those that it has stay in force, and other clients have their own budget.
            _ = try await clients.register(key, Self.controls(100..<164), by: client)
            try await fixture.register("tablet")
            _ = try await clients.register(
                StreamFixture.key("tablet"), Self.controls(200..<210), by: client)
            clock.advance(to: clock.now + wait)
            _ = try await clients.register(key, Self.controls(99..<100), by: client)
        }
    }

    @Test func `a webhook that can never be requested is a fault, unless it is registered`()
        async throws
    {
        try await StreamFixture.running(clock: clock.gateway) { fixture, _ in
            let clients = fixture.engine.clients
            let webhook: JSONValue = [
                "delivery": [
                    ["type": "stream"], ["type": "webhook", "url": "https://10.0.0.1/hook"],
                ]
            ]
            let error = await #expect(throws: EngineError.self) {
                try await clients.register(key, .patch(webhook), by: .backend)
            }
            guard case .invalid(let faults)? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(faults.list.map(\.place) == ["delivery[1].url"])
            clients.permit(webhooks: [try #require(AddressRange("10.0.0.0/8"))])
            _ = try await clients.register(key, .patch(webhook), by: .backend)
            clients.permit(webhooks: [])
            let own = Registrar.client(vouched: [:])
            #expect(try await clients.register(key, .patch(webhook), by: own).hasWebhook)
        }
    }

    @Test func `a browser's push service may not have what webhooks may, and needs a key`()
        async throws
    {
        func faults(_ endpoint: String, _ p256dh: [UInt8], _ clients: ClientDirectory) async throws
            -> [String]
        {
            let address: JSONValue = [
                "type": "webpush", "endpoint": .string(endpoint),
                "keys": [
                    "p256dh": .string(Base64.url.string(p256dh)),
                    "auth": "AAAAAAAAAAAAAAAAAAAAAA",
                ],
            ]
            do {
                _ = try await clients.register(
                    key, .patch(["delivery": [address]]), by: .client(vouched: [:]))
                return []
            } catch EngineError.invalid(let faults) {
                return faults.list.map(\.place)
            }
        }
        let point = try #require(
            Base64.url.decode(try SigningKey(generating: .es256).applicationServerKey))
        let none = [4] + [UInt8](repeating: 1, count: 64)
        try await StreamFixture.running(clock: clock.gateway) { fixture, _ in
            let clients = fixture.engine.clients
            let range = try #require(AddressRange("10.0.0.0/8"))
            clients.permit(webhooks: [range])
            let url = "https://10.0.0.1/p"
            #expect(
                try await faults(url, none, clients)
                    == ["delivery[0].endpoint", "delivery[0].keys.p256dh"])
            clients.permit(webhooks: [], services: [range])
            #expect(try await faults(url, none, clients) == ["delivery[0].keys.p256dh"])
            #expect(try await faults(url, point, clients).isEmpty)
        }
    }

    @Test func `a rebuild is measured from the change to its report`() async throws {
        try await StreamFixture.running(clock: clock.gateway) { fixture, _ in
            let sequence = try await fixture.change("Character", "panda")
            clock.advance(to: clock.now + 7_000)
            let name = TimelineID("detail", ["character": .single("panda")])
            try await fixture.engine.clients.acknowledge(
                key, at: sequence, in: fixture.cursors.epoch, recommendations: [],
                rebuilt: [RebuildReport(name: name, milliseconds: 20)])
            let sum = MetricFamily.freshnessConfirmed.name + "_sum{"
            let lines = fixture.metrics.registry.page(.openMetrics).split(separator: "\n")
                .filter { $0.hasPrefix(sum) && $0.contains(#"kind="detail""#) }
            #expect(lines.compactMap { Double($0.split(separator: " ").last ?? "") } == [7])
        }
    }

    @Test func `only registered clients acknowledge`() async throws {
        try await StreamFixture.running(clock: clock.gateway) { fixture, _ in
            let error = await #expect(throws: EngineError.self) {
                try await fixture.engine.clients.acknowledge(
                    StreamFixture.key("other"), at: 1, in: fixture.cursors.epoch,
                    recommendations: [], rebuilt: [])
            }
            #expect(error?.code == "unknown-client")
        }
    }
}
