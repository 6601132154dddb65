import Foundation
import GatewayTestSupport
import Testing
import TimelineGatewayClient
import TimelineRuntime
import WidgetModel

/// A gateway that is restored from a backup older than a registration: its clients register again,
/// so that notifications include widgets placed since.
@Suite(.serialized, .timeLimit(.minutes(30))) struct RestoredRegistrationTests {
    private static let app = "com.mygame"
    private static let kinds = ["first", "second"]

    private static let catalog = """
        app: com.mygame
        entities: { first: {}, second: {} }
        widgets:
          - kind: first
            configuration: static
            families: [systemSmall]
            dependsOn: [{ entity: first }]
          - kind: second
            configuration: static
            families: [systemSmall]
            dependsOn: [{ entity: second }]
        """

    /// A gateway, its client and the client's files.
    private final class World {
        var backend: Backend
        let place: String

        init() throws {
            place = try GatewayProcess.temporaryDirectory()
            backend = try Backend(
                GatewayProcess(), app: RestoredRegistrationTests.app,
                catalog: RestoredRegistrationTests.catalog)
        }

        func backUp() throws {
            try run("backup", "--data", backend.gateway.data, "--to", place + "/copy")
        }

        /// Restores the gateway from its backup; the changes after the backup are lost.
        func restore() throws {
            backend.gateway.kill()
            try run("restore", "--from", place + "/copy", "--data", place + "/data")
            backend.gateway = try GatewayProcess(data: place + "/data")
        }

        private func run(_ arguments: String...) throws {
            let (exit, output) = try GatewayProcess.run(
                arguments, program: GatewayProcess.program(named: "timelinectl"))
            try #require(exit == .status(0), "\(output)")
        }

        func registeredKinds() throws -> [String] { try backend.registeredKinds(of: "phone") }
    }

    @Test func theClientOfAWidgetExtensionRegistersAgain() async throws {
        let world = try World()

        func client(_ kinds: [String]) throws -> GatewayClient {
            let connection = try world.backend.connection(of: "phone")
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
        try world.backend.post(Change(entity: "second"))
        let stale = try await extensionClient.stale()
        #expect(stale.timelines == ["second"])
    }
}
