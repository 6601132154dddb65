import ArgumentParser
import GatewayDocuments
import WidgetModel

struct ResendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resend",
        abstract: "Resend a push to a client immediately.",
        discussion: """
            Sends what is stale for the client now, or else the last notification again, to each \
            of its addresses on the channel. Ignores schedules, budgets and disabled webhooks, and \
            the result does not affect the address. See the outcome a second later with \
            `timelinectl attempts`. Needs a token with the scope operator.

            Examples:
              timelinectl resend --client renderer-1 --channel webhook
              timelinectl resend --client device-1 --channel widgets --json
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption
    @OptionGroup var client: ClientOption

    @Option(help: "Channel of the pushes.")
    var channel: NotificationChannel

    func run() async throws {
        let order: JSONValue = ["channel": .string(channel.rawValue)]
        try await options.send(
            "POST", "/clients/\(client.client)/pushes", of: app.required(),
            body: order.serialized, text: Self.text)
    }

    static func text(_ taken: PushesTaken) -> String {
        taken.pushes == 1 ? "1 push started" : "\(taken.pushes) pushes started"
    }
}

extension NotificationChannel: ExpressibleByArgument {
    package static var allValueStrings: [String] { pushes.map(\.rawValue) }

    package init?(argument: String) {
        guard let channel = Self.pushes.first(where: { $0.rawValue == argument }) else {
            return nil
        }
        self = channel
    }
}
