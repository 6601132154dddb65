import ArgumentParser
import Foundation

/// Runs the sample widgets of this SDK against a live gateway, and checks the content that the
/// devices show.
@main
struct WidgetExamples: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "widget-examples",
        abstract: "Run the widgets of an iPhone, an iPad and a watch against a game's server.",
        discussion: """
            Needs a gateway whose own issuer is enabled, as in development mode, and a token for the
            app com.mygame with the scopes catalog:write, changes:write, clients:write and
            tokens:issue. Exit status 1 if a notification or a widget's content is not as expected.

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

    @Option(help: ArgumentHelp("The app's catalog.", valueName: "file"))
    var catalog = "Deploy/sample/catalog.yaml"

    @Option(
        help: ArgumentHelp(
            "Directory for the devices' archives. Default: a temporary one.",
            valueName: "directory"))
    var archives: String?

    @Option(
        help: ArgumentHelp(
            "The longest wait for a notification and its rebuild.", valueName: "seconds"))
    var patience = 120.0

    func run() async throws {
        let token = token ?? ProcessInfo.processInfo.environment["TIMELINE_GATEWAY_TOKEN"] ?? ""
        guard let document = FileManager.default.contents(atPath: catalog) else {
            throw ValidationError("cannot read \(catalog)")
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
        guard
            try await game.play(
                catalog: Array(document), directory: directory, patience: .seconds(patience))
        else {
            throw ExitCode.failure
        }
        print("\nEvery device got exactly the notifications it needs and shows current data.")
    }
}
