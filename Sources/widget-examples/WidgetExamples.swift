import ArgumentParser
import Foundation

/// Runs the sample widgets of this SDK against a live gateway, and checks the content that the
/// devices show.
@main
struct WidgetExamples: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "widget-examples",
        abstract: "Show the widgets of an iPhone, an iPad and a watch following a game's server.",
        discussion: """
            Needs a gateway whose own issuer is enabled, as in development mode, and a token for the
            app com.mygame with the scopes catalog:write, changes:write, clients:write and
            tokens:issue. Exit status 1 when a device was told, or shows, anything but what it must.

            Examples:
              . .build-run/env
              TIMELINE_GATEWAY_TOKEN=$BACKEND widget-examples --url "$URL" --ca "$CA"
              widget-examples --url "$URL" --ca "$CA" --archives devices
              timelinectl show devices/iphone
            """)

    @Option(help: ArgumentHelp("The gateway's origin.", valueName: "url"))
    var url: String

    @Option(help: ArgumentHelp("Certificates to trust.", valueName: "file"))
    var ca: String

    @Option(help: ArgumentHelp("The backend's token (TIMELINE_GATEWAY_TOKEN).", valueName: "token"))
    var token: String?

    @Option(help: ArgumentHelp("What the widgets depend on.", valueName: "file"))
    var catalog = "Deploy/sample/catalog.yaml"

    @Option(
        help: ArgumentHelp(
            "Where the devices keep their archives; a directory that is removed by default.",
            valueName: "directory"))
    var archives: String?

    func run() async throws {
        let token = token ?? ProcessInfo.processInfo.environment["TIMELINE_GATEWAY_TOKEN"] ?? ""
        guard let document = FileManager.default.contents(atPath: catalog) else {
            throw ValidationError("\(catalog) cannot be read")
        }
        let directory =
            archives.map { URL(filePath: $0) }
            ?? FileManager.default.temporaryDirectory
            .appending(path: "widget-examples-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { if archives == nil { try? FileManager.default.removeItem(at: directory) } }
        let access = try GatewayAccess(
            url: url, ca: ca, token: token.trimmingCharacters(in: .whitespacesAndNewlines))
        let game = try Demonstration(access: access) { line in
            FileHandle.standardOutput.write(Data((line + "\n").utf8))
        }
        guard try await game.play(catalog: Array(document), directory: directory) else {
            throw ExitCode.failure
        }
        print("\nEvery device was told exactly what it depends on, and shows what is true.")
    }
}
