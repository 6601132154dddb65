import Foundation
import GatewayTestSupport
import Synchronization
import Testing
import TimelineGatewayClient
import TimelineRuntime
import WidgetModel

/// The API for an app with WidgetKit, with the real daemon over real TLS.
@Suite(.serialized, .timeLimit(.minutes(30))) final class ExtensionTests: Sendable {
    private let gateway: GatewayProcess
    private let backend: String
    private let builds = Mutex(0)

    init() throws {
        gateway = try GatewayProcess()
        backend = try gateway.token(app: CharacterGame.app, scope: "catalog:write changes:write")
        let put = try gateway.http().request(
            "PUT", "/v1/apps/\(CharacterGame.app)/catalog", token: backend,
            headers: [("Content-Type", "application/yaml")], body: CharacterGame.catalogYAML)
        try #require(put.status == 201, "\(put.text)")
    }

    /// - Returns: The sequence of the change.
    @discardableResult
    private func change(
        _ character: String, _ properties: [String] = ["healthLevel"]
    ) throws -> UInt64 {
        let event = CloudEvent(
            source: "game", id: UUID().uuidString,
            change: CharacterGame.change(character, properties))
        let answer = try gateway.http().request(
            "POST", "/v1/apps/\(CharacterGame.app)/changes", token: backend,
            headers: [("Content-Type", "application/cloudevents+json")], body: event.json.text)
        try #require(answer.status == 202, "\(answer.text)")
        return UInt64(try #require(answer["sequence"]?.integerValue))
    }

    private func client(
        _ id: String, _ registration: ClientRegistration
    ) throws -> (GatewayClient, AcknowledgingConnection) {
        let token = try gateway.token(app: CharacterGame.app, scope: "client", sub: id)
        let connection = AcknowledgingConnection(
            try CurlConnection(
                .init(gateway: gateway.url, caFile: gateway.ca, bearerToken: { token })))
        let client = GatewayClient(
            app: CharacterGame.app, client: id, connection: connection,
            verifier: PublishedKeyVerifier(connection: connection, app: CharacterGame.app),
            directory: URL(filePath: try GatewayProcess.temporaryDirectory()),
            registration: { registration })
        return (try #require(client), connection)
    }

    @Test func anExtensionBuildsExactlyWhatIsStale() async throws {
        let widgets = ["bramble", "marlin"].map { CharacterGame.widget($0) }
        let (client, connection) = try self.client(
            "my-iphone", ClientRegistration(platform: "iOS", widgets: widgets))
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
        let sequence = try change("marlin")
        #expect(try await client.stale().timelines == [CharacterGame.detail])
        #expect(try await shown([widgets[1]]) == [3])
        let acknowledged = try #require(connection.cursor.withLock { $0 })
        #expect(acknowledged.sequence >= sequence, "it is pushed what it has built")
        #expect(try await shown() == [1, 3])
        #expect(try await client.stale().isEmpty)
        let (told, continuation) = AsyncStream.makeStream(of: StaleContent.self)
        let run = Task { try await client.follow { continuation.yield($0) } }
        // The stream reports it, whether it is open by then or resumes later.
        try change("bramble")
        var iterator = told.makeAsyncIterator()
        #expect(await iterator.next()?.timelines == [CharacterGame.detail])
        run.cancel()
        _ = await run.result
        #expect(try await shown() == [4, 3])
    }

    @Test func anAppIsToldWhatTheGatewayCannotUse() async throws {
        let widget = ConfiguredWidget(kind: "com.mygame.detial", family: "systemSmall")
        let (client, _) = try self.client(
            "my-iphone", ClientRegistration(platform: "iOS", widgets: [widget]))
        #expect(try await client.register().map(\.place).contains("widgets[0].kind"))
    }

    @Test func aWatchConfirmsASetThatItRenewed() async throws {
        let item = RecommendationSet.Item(
            parameters: ["character": .single("bramble")], description: "Bramble")
        let set = RecommendationSet(kind: CharacterGame.detail, items: [item])
        let (client, _) = try self.client(
            "my-watch", ClientRegistration(platform: "watchOS", recommendations: [set]))
        try await client.register()
        #expect(try await client.stale().isEmpty)
        try change("bramble", ["avatar"])
        for _ in 0..<2 {
            let stale = try await client.stale()
            #expect(stale.recommendations == [CharacterGame.detail])
        }
        try await client.reloadStale()
        #expect(try await client.stale().isEmpty)
    }
}

/// Keeps the cursor of the last acknowledgement.
private final class AcknowledgingConnection: GatewayConnection {
    let cursor = Mutex<Cursor?>(nil)
    private let connection: CurlConnection

    init(_ connection: CurlConnection) { self.connection = connection }

    func send(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayResponse {
        if request.target.hasSuffix("/acks"), let body = request.body,
            let text = (try? JSONValue(parsing: body))?.objectValue?["cursor"]?.stringValue
        {
            cursor.withLock { $0 = Cursor(text: text) }
        }
        return try await connection.send(request)
    }

    func stream(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayStream {
        try await connection.stream(request)
    }
}
