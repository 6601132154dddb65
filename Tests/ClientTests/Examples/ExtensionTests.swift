import Foundation
import GatewayTestSupport
import Synchronization
import Testing
import TimelineGatewayClient
import TimelineRuntime
import WidgetModel

/// The API for an app with WidgetKit, with the real daemon over real TLS.
@Suite(.serialized, .timeLimit(.minutes(30))) final class ExtensionTests: Sendable {
    private let backend: Backend
    private let builds = Mutex(0)

    init() throws {
        backend = try Backend(
            GatewayProcess(), app: CharacterGame.app, catalog: CharacterGame.catalogYAML)
    }

    private func client(_ id: String, _ registration: ClientRegistration) throws -> GatewayClient {
        let connection = try backend.connection(of: id)
        let client = GatewayClient(
            app: CharacterGame.app, client: id, connection: connection,
            verifier: PublishedKeyVerifier(connection: connection, app: CharacterGame.app),
            directory: URL(filePath: try GatewayProcess.temporaryDirectory()),
            registration: { registration })
        return try #require(client)
    }

    @Test func anExtensionBuildsExactlyWhatIsStale() async throws {
        let widgets = ["bramble", "marlin"].map { CharacterGame.widget($0) }
        let client = try client("my-iphone", ClientRegistration(platform: "iOS", widgets: widgets))
        func shown(_ asked: [ConfiguredWidget]? = nil) async throws -> [Int] {
            var shown: [Int] = []
            for widget in asked ?? widgets {
                let build = try await client.timeline(of: widget) {
                    builds.withLock { builds in
                        builds += 1
                        return builds
                    }
                }
                shown.append(build)
            }
            return shown
        }
        try await client.register()
        #expect(try await shown() == [1, 2])
        #expect(try await shown() == [1, 2])
        #expect(try await client.stale().isEmpty)
        try backend.post(CharacterGame.change("marlin"))
        #expect(try await client.stale().timelines == [CharacterGame.detail])
        #expect(try await shown([widgets[1]]) == [3])
        #expect(try await shown() == [1, 3])
        #expect(try await client.stale().isEmpty)
        let (told, continuation) = AsyncStream.makeStream(of: StaleContent.self)
        let run = Task { try await client.follow { continuation.yield($0) } }
        // The stream reports it, whether it is open by then or resumes later.
        try backend.post(CharacterGame.change("bramble"))
        var iterator = told.makeAsyncIterator()
        #expect(await iterator.next()?.timelines == [CharacterGame.detail])
        run.cancel()
        _ = await run.result
        #expect(try await shown() == [4, 3])
    }

    @Test func anAppIsToldWhatTheGatewayCannotUse() async throws {
        let widget = ConfiguredWidget(kind: "com.mygame.detial", family: "systemSmall")
        let client = try client("my-iphone", ClientRegistration(platform: "iOS", widgets: [widget]))
        #expect(try await client.register().map(\.place).contains("widgets[0].kind"))
    }

    @Test func aWatchConfirmsASetThatItRenewed() async throws {
        let item = RecommendationSet.Item(
            parameters: ["character": .single("bramble")], description: "Bramble")
        let set = RecommendationSet(kind: CharacterGame.detail, items: [item])
        let client = try client(
            "my-watch", ClientRegistration(platform: "watchOS", recommendations: [set]))
        try await client.register()
        #expect(try await client.stale().isEmpty)
        try backend.post(CharacterGame.change("bramble", ["avatar"]))
        for _ in 0..<2 {
            let stale = try await client.stale()
            #expect(stale.recommendations == [CharacterGame.detail])
        }
        try await client.reloadStale()
        #expect(try await client.stale().isEmpty)
    }
}
