import Foundation
import GatewayTestSupport
import Testing

/// The sample programs run as by hand: a real daemon, the real program, real TLS.
@Suite(.serialized, .timeLimit(.minutes(30))) struct WidgetExamplesTests {
    private let gateway: GatewayProcess

    init() throws { gateway = try GatewayProcess() }

    private func run(
        catalog: String, patience: Double = Patience.seconds
    ) throws -> (exit: GatewayProcessExit, output: String) {
        let token = try gateway.token(
            app: CharacterGame.app,
            scope: "catalog:write changes:write clients:write tokens:issue", sub: "backend")
        return try GatewayProcess.run(
            [
                "--url", gateway.url, "--ca", gateway.ca, "--token", token, "--catalog", catalog,
                "--patience", "\(patience)",
            ], program: GatewayProcess.program(named: "widget-examples"),
            seconds: 10 * Patience.seconds)
    }

    @Test func everyDeviceIsToldAndShowsExactlyWhatItMust() throws {
        let (exit, output) = try run(catalog: CharacterGame.catalogPath)
        #expect(exit == .status(0), "\(output)")
        #expect(output.contains("✓") && !output.contains("✗"))
        #expect(output.contains("🐟 Marlin · health 100 %"))
    }

    /// Without a notification a widget keeps showing its old content.
    @Test func aWidgetThatShowsSomethingWrongIsAFailure() throws {
        let rule = "entity: GameStatus\n        match: { account: "
        let parts = CharacterGame.catalogYAML.split(
            separator: rule + "$client.account", omittingEmptySubsequences: false)
        try #require(parts.count == 2)
        let path = try GatewayProcess.temporaryDirectory() + "/catalog.yaml"
        try parts.joined(separator: rule + "nobody").write(
            toFile: path, atomically: true, encoding: .utf8)
        let (exit, output) = try run(catalog: path, patience: 3)
        #expect(exit == .status(1))
        #expect(output.contains("✗         turn shows: [hourglass] · Turn 1"), "\(output)")
    }
}
