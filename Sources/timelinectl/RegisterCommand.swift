import ArgumentParser
import GatewayDocuments
import WidgetModel

struct RegisterCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "register",
        abstract: "Register a client: its widgets, recommendation sets and addresses.",
        discussion: """
            Prints the cursor at which the registration took effect. A client that then builds \
            every timeline may resume from it. Needs a token with the scope client (for this \
            client) or clients:write.

            Examples:
              timelinectl register --client device-1 registration.json
              echo '{"platform":"iOS","widgets":[{"kind":"com.mygame.character-detail",
                "family":"systemSmall","parameters":{"character":"Unipony"}}]}' \\
                | timelinectl register --client device-1 -
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption
    @OptionGroup var client: ClientOption

    @Argument(help: "The registration in JSON, or - for standard input.")
    var file: String

    func run() async throws {
        let bytes = try Terminal.read(file)
        let registration: JSONValue
        do throws(JSONFault) {
            registration = try JSONValue(parsing: bytes)
        } catch {
            throw ValidationError("the registration is not JSON: \(error)")
        }
        try await options.send(
            "PUT", "/clients/\(client.client)", of: app.required(), body: registration.serialized,
            text: Self.text)
    }

    static func text(_ registered: Registered) -> String {
        let lines = [
            "registered \(registered.client)", "  cursor: \(registered.cursor)",
            "  expires: \(registered.expires)",
        ]
        let keys =
            (registered.webhookKeys ?? []).map { "  webhook key: \($0)" }
            + (registered.applicationServerKey.map { ["  application server key: \($0)"] } ?? [])
        return (lines + keys + warningLines(registered.warnings)).joined(separator: "\n")
    }
}
