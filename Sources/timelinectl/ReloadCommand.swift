import ArgumentParser
import GatewayDocuments
import WidgetModel

struct ReloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Make all clients rebuild a kind or everything, or one client everything.",
        discussion: """
            The reload is logged like any change: disconnected clients get it when they reconnect. \
            Needs a token with the scope operator.

            Examples:
              timelinectl reload --kind com.mygame.character-detail
              timelinectl reload --client my-iphone
              timelinectl reload --all --json
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption

    @Option(help: "The kind to rebuild.")
    var kind: String?

    @Option(help: "The client that rebuilds everything.")
    var client: String?

    @Flag(help: "Rebuild every kind.")
    var all = false

    func validate() throws {
        guard [all, kind != nil, client != nil].count(where: \.self) == 1 else {
            throw ValidationError("give one of --kind KIND, --client CLIENT or --all")
        }
    }

    func run() async throws {
        try await options.send(
            "POST", "/reloads", of: app.required(), body: body.serialized, text: Self.text)
    }

    var body: JSONValue {
        if let kind { return ["kind": .string(kind)] }
        if let client { return ["client": .string(client)] }
        return ["all": true]
    }

    static func text(_ taken: ReloadTaken) -> String {
        "accepted as entry \(taken.sequence) of the log"
    }
}
