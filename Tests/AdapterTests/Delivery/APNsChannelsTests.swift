import APNsSimulator
import GatewayCore
import Testing
import WidgetModel

@testable import GatewayDelivery

/// Broadcast channels, at the simulated APNs.
@Suite struct APNsChannelsTests {
    /// Keeps the provider token, as a store does.
    private actor Shelf {
        private(set) var held: SharedProviderToken?

        func replace(_ new: SharedProviderToken) -> SharedProviderToken {
            held = new
            return new
        }
    }

    private static func channels(_ fixture: APNsFixture) -> APNsChannels {
        var configuration = fixture.configuration
        if case .key(let key) = configuration.credential {
            let shelf = Shelf()
            configuration.credential = .key(
                .init(
                    key.key, id: key.id, team: key.team,
                    share: ProviderTokenShare(
                        read: { await shelf.held },
                        replace: { _, new in await shelf.replace(new) })))
        }
        return APNsChannels(configuration, .sandbox, isApple: false)
    }

    private static func reason(_ body: () async throws -> Void) async -> String? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? APNsChannels.Failure)?.reason
        }
    }

    @Test(arguments: [false, true])
    func `channels are created, pushed to and deleted, with either credential`(
        certificate: Bool
    ) async throws {
        let fixture = try APNsFixture(certificate: certificate)
        let channels = Self.channels(fixture)
        // The second request has the token of the first: another one would be refused.
        let ids = [
            try await channels.create(bundle: APNsFixture.app),
            try await channels.create(bundle: APNsFixture.app),
        ]
        #expect(Set(ids).count == 2)
        let form = try APNsPushForm(.liveactivity, app: APNsFixture.app).at(priority: 10)
        let content = try ActivityContent(
            Array(#"{"event":"update","contentState":{"goals":1}}"#.utf8))
        func push() async throws -> APNsPushResult {
            var push = try #require(
                APNsPush(channel: ids[0], bundle: APNsFixture.app, form: form, registeredAt: 0))
            push.payload = try content.payload(at: 1_800_000_000)
            return await fixture.pool.push(push)
        }
        // Stored for devices that are not reachable: otherwise its expiration would be refused.
        let delivered = try await push()
        #expect(delivered.reaction == APNsReaction(.delivered))
        let request = try #require(fixture.device(ids[0]).pushes.first).request
        #expect(request.path == "/4/broadcasts/apps/com.mygame" && request.channelID == ids[0])
        #expect(request.requestID == delivered.id && request.id == nil && request.topic == nil)
        #expect(request.priority == "10")
        try await channels.delete(ids[0], bundle: APNsFixture.app)
        // As after an answer that was lost.
        try await channels.delete(ids[0], bundle: APNsFixture.app)
        #expect(try await push().reaction.verdict == .dropAddress)
        for (channel, bundle) in [("", "a"), ("A_==", "a"), ("AAAA", ""), ("AAAA", "a/b")] {
            #expect(APNsPush(channel: channel, bundle: bundle, form: form, registeredAt: 0) == nil)
        }
        await fixture.stop()
        #expect(fixture.server.record.violations.isEmpty)
    }

    @Test func `a channel that is refused, or not answered for, has a reason`() async throws {
        let fixture = try APNsFixture(terms: { $0.rules.broadcastApps = [] })
        let channels = Self.channels(fixture)
        let refused = await Self.reason { _ = try await channels.create(bundle: APNsFixture.app) }
        #expect(refused == "FeatureNotEnabled")
        await fixture.stop()
        let unanswered = await Self.reason {
            try await Self.channels(fixture).delete("AAAA", bundle: APNsFixture.app)
        }
        #expect(unanswered == "unreachable")
    }

    @Test func `channels are managed at hosts of their own, unless pushes go elsewhere`() throws {
        let fixture = try APNsFixture()
        func origin(_ environment: APNsEnvironment, isApple: Bool = true) -> String {
            APNsChannels(fixture.configuration, environment, isApple: isApple).origin
        }
        #expect(origin(.production) == "https://api-manage-broadcast.push.apple.com:2196")
        #expect(origin(.sandbox) == "https://api-manage-broadcast.sandbox.push.apple.com:2195")
        #expect(origin(.sandbox, isApple: false) == fixture.configuration.origin)
    }
}
