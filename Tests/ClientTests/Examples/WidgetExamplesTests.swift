import Foundation
import GatewayTestSupport
import Testing

/// The sample programs run as by hand: a real daemon, the real program, real TLS.
@Suite(.serialized, .timeLimit(.minutes(30))) struct WidgetExamplesTests {
    private let gateway: GatewayProcess

    init() throws { gateway = try GatewayProcess() }

    private func run(
        catalog: String, patience: Double = Patience.seconds, _ options: String...
    ) throws -> (exit: GatewayProcessExit, output: String) {
        let token = try gateway.token(
            app: CharacterGame.app,
            scope: "catalog:write changes:write clients:write tokens:issue", sub: "backend")
        return try GatewayProcess.run(
            options + [
                "--url", gateway.url, "--ca", gateway.ca, "--token", token, "--catalog", catalog,
                "--patience", "\(patience)",
            ], program: GatewayProcess.program(named: "widget-examples"),
            seconds: 10 * Patience.seconds)
    }

    @Test func everyDeviceIsToldAndShowsExactlyWhatItMust() throws {
        let archives = try GatewayProcess.temporaryDirectory()
        let (exit, output) = try run(catalog: CharacterGame.catalogPath, "--archives", archives)
        #expect(exit == .status(0), "\(output)")
        #expect(output.contains("✓") && !output.contains("✗"))
        #expect(output.contains("🐟 Marlin · health 100 %"))
        #expect(output.contains("battle shows: Battle of 🦔 Bramble · health 40 %"))
        let clients = try gateway.http().request(
            "GET", "/v1/apps/\(CharacterGame.app)/clients",
            token: gateway.token(app: CharacterGame.app, scope: "clients:write"))
        #expect(clients.text == #"{"clients":[]}"#, "every device is removed")
        try draw(archives)
    }

    /// Draws what the devices show in the end, and keeps it for people to look at.
    private func draw(_ archives: String) throws {
        let pictures = #filePath.replacing(
            "Tests/ClientTests/Examples/WidgetExamplesTests.swift",
            with: ".build-run/pictures/")
        try FileManager.default.createDirectory(atPath: pictures, withIntermediateDirectories: true)
        func picture(_ name: String, of device: String, _ options: String...) throws -> Data {
            let (exit, output) = try GatewayProcess.run(
                ["show", "\(archives)/\(device)", "--output", pictures + name] + options,
                program: GatewayProcess.program(named: "timelinectl"))
            try #require(exit == .status(0), "\(output)")
            return try Data(contentsOf: URL(filePath: pictures + name))
        }
        for (device, text) in [("iphone", ">Heal"), ("ipad", ">Turn"), ("watch", ">Marlin")] {
            let page = try picture("\(device).html", of: device, "--format", "html", "--gallery")
            #expect(String(decoding: page, as: UTF8.self).contains(text))
        }
        let png = try picture(
            "turn.png", of: "ipad", "--kind", CharacterGame.status, "--format", "png")
        #expect(Array(png.prefix(8)) == [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
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
