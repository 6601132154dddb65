import Foundation
import GatewayTestSupport
import Testing
import TimelineGatewayClient
import TimelineRuntime
import WidgetModel

private struct Number: TimelineEntry {
    let date: Date
}

private struct NumberProvider: AsyncTimelineProvider {
    func placeholder(in context: Context) -> Number { Number(date: .distantPast) }

    func snapshot(in context: Context) async -> Number { Number(date: .now) }

    func timeline(in context: Context) async throws -> Timeline<Number> {
        Timeline(entries: [Number(date: .now)], policy: .never)
    }
}

/// A gateway that is restored from a backup older than a registration: its clients register again,
/// so that notifications include widgets placed since.
@Suite(.serialized, .timeLimit(.minutes(30))) struct RestoredRegistrationTests {
    private static let app = "com.mygame"
    private static let kinds = ["first", "second"]

    /// A gateway, its client and the client's files.
    private final class World {
        let gateway: GatewayProcess
        let backend: String
        let token: String
        let place: String
        /// The gateway that is running now.
        var current: GatewayProcess

        init() throws {
            gateway = try GatewayProcess()
            current = gateway
            place = try GatewayProcess.temporaryDirectory()
            backend = try gateway.token(
                app: RestoredRegistrationTests.app,
                scope: "catalog:write changes:write clients:write")
            token = try gateway.token(
                app: RestoredRegistrationTests.app, scope: "client", sub: "phone")
            let entities = RestoredRegistrationTests.kinds.map { "  \($0): {}" }
            let widgets = RestoredRegistrationTests.kinds.map {
                """
                  - kind: \($0)
                    configuration: static
                    families: [systemSmall]
                    dependsOn: [{ entity: \($0) }]
                """
            }
            let put = try gateway.http().request(
                "PUT", "/v1/apps/\(RestoredRegistrationTests.app)/catalog", token: backend,
                headers: [("Content-Type", "application/yaml")],
                body: """
                    app: \(RestoredRegistrationTests.app)
                    entities:
                    \(entities.joined(separator: "\n"))
                    widgets:
                    \(widgets.joined(separator: "\n"))
                    """)
            try #require(put.status == 201, "\(put.text)")
        }

        deinit { try? FileManager.default.removeItem(atPath: place) }

        func connection() throws -> CurlConnection {
            let token = token
            return try CurlConnection(
                .init(gateway: current.url, caFile: current.ca, bearerToken: { token }))
        }

        func backUp() throws {
            try run("backup", "--data", gateway.data, "--to", place + "/copy")
        }

        /// Restores the gateway from its backup; the changes after the backup are lost.
        func restore() throws {
            gateway.kill()
            try run("restore", "--from", place + "/copy", "--data", place + "/data")
            current = try GatewayProcess(data: place + "/data")
        }

        private func run(_ arguments: String...) throws {
            let (exit, output) = try GatewayProcess.run(
                arguments, program: GatewayProcess.program(named: "timelinectl"))
            try #require(exit == .status(0), "\(output)")
        }

        func change(_ entity: String, _ id: String) throws {
            let answer = try current.http().request(
                "POST", "/v1/apps/\(RestoredRegistrationTests.app)/changes", token: backend,
                headers: [("Content-Type", "application/cloudevents+json")],
                body: JSONValue.object([
                    "specversion": "1.0", "type": "changed", "source": "test", "id": .string(id),
                    "data": ["entity": .string(entity)],
                ]).text)
            try #require(answer.status == 202, "\(answer.text)")
        }

        func registeredKinds() throws -> [String] {
            let answer = try current.http().request(
                "GET", "/v1/apps/\(RestoredRegistrationTests.app)/clients/phone", token: backend)
            return (answer["widgets"]?.arrayValue ?? []).compactMap {
                $0.objectValue?["kind"]?.stringValue
            }.sorted()
        }
    }

    @Test func theClientRegistersAgain() async throws {
        let world = try World()

        /// Runs the client of an app with these widgets once, from the archive of its previous run.
        func refresh(_ kinds: [String]) async throws {
            var configuration = try #require(
                TimelineClientConfiguration(
                    app: Self.app, client: "phone", platform: "iOS",
                    widgets: kinds.map { WidgetInfo(kind: $0, family: .systemSmall) }))
            configuration.mode = .poll(every: .seconds(900))
            let connection = try world.connection()
            let client = TimelineClient(
                configuration: configuration,
                widgets: try WidgetDeclarations(
                    Self.kinds.map { StaticConfiguration(kind: $0, provider: NumberProvider()) }),
                connection: connection,
                verifier: PublishedKeyVerifier(connection: connection, app: Self.app),
                archive: ClientArchive(directory: world.place + "/archive"))
            #expect(await client.refresh())
        }

        try await refresh(["first"])
        try world.backUp()
        try await refresh(["first", "second"])
        #expect(try world.registeredKinds() == ["first", "second"])
        try world.restore()
        #expect(try world.registeredKinds() == ["first"])
        try await refresh(["first", "second"])
        #expect(try world.registeredKinds() == ["first", "second"])
    }

    @Test func theClientOfAWidgetExtensionRegistersAgain() async throws {
        let world = try World()

        func client(_ kinds: [String]) throws -> GatewayClient {
            let connection = try world.connection()
            let made = GatewayClient(
                app: Self.app, client: "phone", connection: connection,
                verifier: PublishedKeyVerifier(connection: connection, app: Self.app),
                directory: URL(filePath: world.place + "/shelf"),
                registration: {
                    ClientRegistration(
                        platform: "iOS",
                        widgets: kinds.map {
                            ConfiguredWidget(kind: $0, family: "systemSmall")
                        })
                })
            return try #require(made)
        }

        try await client(["first"]).register()
        try world.backUp()
        try await client(Self.kinds).register()
        try world.restore()
        let extensionClient = try client(Self.kinds)
        for kind in Self.kinds {
            _ = try await extensionClient.timeline(
                of: ConfiguredWidget(kind: kind, family: "systemSmall"), build: { 1 })
        }
        #expect(try world.registeredKinds() == Self.kinds)
        try world.change("second", "1")
        let stale = try await extensionClient.stale()
        #expect(stale.timelines == ["second"])
    }
}
