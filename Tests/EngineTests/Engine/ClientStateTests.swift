import GatewayCore
import GatewayDocuments
import GatewayStorage
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayEngine

/// When a client was last seen, its state in lists, and attributes that it lacks.
@Suite struct ClientStateTests {
    private let clock = HeldClock()
    private let key = StreamFixture.key("phone")

    private func explainer(_ fixture: StreamFixture) -> Explainer {
        Explainer(fixture.engine) { PushScheduler.Terms() }
    }

    /// Returns what a list says of a client.
    private func listed(_ fixture: StreamFixture) async throws -> RegisteredClient {
        var documents = [RegisteredClient()]
        documents[0].client = key.client
        try await explainer(fixture).describe(&documents, app: key.app)
        return documents[0]
    }

    @Test func `registering, acknowledging and streaming count as being seen`() async throws {
        let fixture = try StreamFixture(clock: clock.gateway)
        try await fixture.putCatalog()
        try await fixture.register("phone")
        func seen() async throws -> String? {
            let explained = try await explainer(fixture).client(key)
            let listed = try await listed(fixture)
            #expect(listed.lastSeen == explained?.lastSeen)
            return listed.lastSeen
        }
        #expect(try await seen() == timestamp(clock.wall))
        clock.advance(to: clock.now + 60_000)
        _ = try await fixture.engine.clients.register(
            key, .patch(["osVersion": "26.1"]), by: .backend)
        #expect(try await seen() == timestamp(clock.wall))
        clock.advance(to: clock.now + 60_000)
        try await fixture.engine.clients.acknowledge(
            key, at: fixture.store.head, in: fixture.cursors.epoch, recommendations: [],
            rebuilt: [])
        #expect(try await seen() == timestamp(clock.wall))
        let acknowledged = clock.wall
        clock.advance(to: clock.now + 60_000)
        #expect(try await seen() == timestamp(acknowledged))
        let reader = try await fixture.open(try fixture.admit("phone", since: nil))
        #expect(try await seen() == timestamp(clock.wall))
        #expect(try await listed(fixture).streams == 1)
        _ = reader
        try await fixture.stop()
    }

    @Test func `removing an address does not count as being seen`() async throws {
        let fixture = try StreamFixture(clock: clock.gateway, pushes: true)
        try await fixture.putCatalog()
        let address = DeliveryAddress.apns(
            .init(pushType: "widgets", token: "aa", environment: "production"))
        try await fixture.register(
            "phone",
            delivery: [
                [
                    "type": "apns", "pushType": "widgets", "token": "aa",
                    "environment": "production",
                ]
            ])
        let registered = clock.wall
        clock.advance(to: clock.now + 60_000)
        try await fixture.engine.clients.drop(address, of: key)
        #expect(fixture.engine.registry.record(key)?.registration.delivery.isEmpty == true)
        #expect(try await listed(fixture).lastSeen == timestamp(registered))
        let row = try await fixture.store.registration(app: key.app, client: key.client)
        #expect(row?.seenAt == registered)
        try await fixture.stop()
    }

    @Test func `a start knows when each client was last seen, and not what it confirmed`()
        async throws
    {
        let directory = try GatewayProcess.temporaryDirectory()
        var fixture = try StreamFixture(
            try SQLiteStore(directory: directory), clock: clock.gateway)
        try await fixture.putCatalog()
        try await fixture.register("phone")
        #expect(try await listed(fixture).stale == 0)
        let registered = clock.wall
        try await fixture.stop()
        clock.advance(to: clock.now + 60_000)
        fixture = try StreamFixture(
            try SQLiteStore(directory: directory), clock: clock.gateway)
        let restored = try await listed(fixture)
        #expect(restored.lastSeen == timestamp(registered))
        #expect(restored.stale == nil)
        #expect(try await explainer(fixture).client(key)?.heardOf == false)
        _ = try await fixture.engine.clients.register(
            key, .patch(["osVersion": "26.1"]), by: .backend)
        #expect(try await explainer(fixture).client(key)?.heardOf == true)
        try await fixture.stop()
    }

    @Test func `stale items are counted in a list as they are explained`() async throws {
        let fixture = try StreamFixture(clock: clock.gateway)
        try await fixture.putCatalog()
        try await fixture.register("phone")
        #expect(try await listed(fixture).stale == 0)
        let sequence = try await fixture.change("Character", "panda")
        #expect(try await listed(fixture).stale == 1)
        let explained = try await explainer(fixture).client(key)
        #expect(explained?.widgets.map(\.fresh) == [false, true])
        try await fixture.engine.clients.acknowledge(
            key, at: sequence, in: fixture.cursors.epoch, recommendations: [], rebuilt: [])
        #expect(try await listed(fixture).stale == 0)
        try await fixture.stop()
    }

    @Test func `a widget that no change reaches is not fresh, and says which attribute it lacks`()
        async throws
    {
        let fixture = try StreamFixture(clock: clock.gateway)
        try await fixture.putCatalog()
        try await fixture.register("phone")
        _ = try await fixture.engine.clients.register(
            key,
            .document([
                "platform": "iOS", "attributes": ["acount": "1"],
                "widgets": [
                    [
                        "kind": "detail", "family": "systemSmall",
                        "parameters": ["character": "panda"],
                    ], ["kind": "status", "family": "systemSmall", "parameters": [:]],
                ],
            ]), by: .backend)
        let explained = try #require(try await explainer(fixture).client(key))
        #expect(explained.widgets.map(\.fresh) == [true, nil])
        #expect(explained.widgets.map(\.dependsOnNothing) == [nil, true])
        #expect(explained.widgets.map(\.lacks) == [nil, ["account"]])
        let warning = try #require(explained.warnings?.first)
        #expect(warning.place == "widgets[1]" && explained.warnings?.count == 1)
        #expect(warning.message.contains("`account`") && warning.message.contains("`acount`"))
        #expect(try await listed(fixture).dependOnNothing == 1)
        // An operator's reload reaches it nevertheless.
        _ = try await fixture.engine.changes.reload(.everything, app: key.app)
        let reloaded = try #require(try await explainer(fixture).client(key))
        #expect(reloaded.widgets.map(\.fresh) == [false, false])
        try await fixture.stop()
    }

    @Test func `only its pushes say what an activity with a token shows`() async throws {
        let fixture = try StreamFixture(clock: clock.gateway, pushes: true)
        try await fixture.putCatalog(StreamFixture.battles)
        _ = try await fixture.engine.clients.register(
            key,
            .document([
                "platform": "iOS",
                "activities": [
                    [
                        "type": "Battle", "id": "7", "attributes": ["hero": "panda"],
                        "delivery": ["type": "apns", "pushType": "liveactivity", "token": "aa"],
                    ]
                ],
            ]), by: .backend)
        func battle() async throws -> ExplainedItem? {
            try await explainer(fixture).client(key)?.activities?.first
        }
        #expect(try await battle()?.fresh == true)
        let sequence = try await fixture.change("Character", "panda")
        try await fixture.engine.clients.acknowledge(
            key, at: sequence, in: fixture.cursors.epoch, recommendations: [], rebuilt: [])
        let stale = try #require(try await battle())
        #expect(stale.fresh == false && stale.stale?.sequence == sequence)
        #expect(stale.outcome == "withheld" && stale.reason == "under-way")
        try await fixture.stop()
    }

    @Test func `an activity is explained with its state, and one of an unknown type sleeps`()
        async throws
    {
        let fixture = try StreamFixture(clock: clock.gateway)
        try await fixture.putCatalog(StreamFixture.battles)
        try await fixture.register("phone")
        _ = try await fixture.engine.clients.register(
            key,
            .document([
                "platform": "iOS",
                "activities": [
                    [
                        "type": "Battle", "id": "7", "attributes": ["hero": "panda"],
                        "channel": "bWF0Y2g=",
                    ], ["type": "Race", "id": "8"],
                ],
            ]), by: .backend)
        func explained() async throws -> ExplainedClient {
            try #require(try await explainer(fixture).client(key))
        }
        let before = try await explained()
        #expect(before.activities?.map(\.type) == ["Battle", "Race"])
        #expect(before.activities?.map(\.fresh) == [true, nil])
        #expect(before.activities?.map(\.sleeps) == [nil, true])
        #expect(before.activities?.map(\.channel) == [nil, nil], "nothing has told of it yet")
        #expect(before.warnings?.map(\.place) == ["activities[1].type"])
        _ = try await fixture.change("Character", "tiger")
        #expect(try await explained().activities?.map(\.fresh) == [true, nil])
        let sequence = try await fixture.change("Character", "panda")
        let battle = try #require(try await explained().activities?.first)
        #expect(battle.fresh == false && battle.stale?.sequence == sequence)
        #expect(battle.outcome == "unreachable" && battle.reason == "awaits-client")
        #expect(try await listed(fixture).stale == 1)
        try await fixture.stop()
    }
}
