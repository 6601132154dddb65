import ArgumentParser
import TimelineClient
import WidgetModel

/// Pushes to a client again.
struct ResendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resend",
        abstract: "Push to a client again, at once.",
        discussion: """
            Says what is stale for the client now, or what was said last where nothing is, to each \
            of its addresses of the channel. Schedules, budgets and disabled webhooks do not keep \
            it, and whatever comes of it, the address is taken for no better and no worse. Look at \
            the outcome a second later with `timelinectl attempts`. Needs a token with the scope \
            operator.

            Examples:
              timelinectl resend --client renderer-1 --channel webhook
              timelinectl resend --client device-1 --channel widgets --json
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption
    @OptionGroup var client: ClientOption

    @Option(help: "webhook, widgets, background or controls.")
    var channel: NotificationChannel

    func run() async throws {
        let service = GatewayService(connection: try options.connection(), app: try app.required())
        do throws(GatewayFailure) {
            let answer = try await service.json(
                "POST", "\(service.base(ofClient: client.client))/pushes",
                body: ["channel": .string(channel.rawValue)])
            Terminal.print(answer.value, as: options.form) { Self.text(answer.value) }
        } catch {
            throw Terminal.fail(error, as: options.form)
        }
    }

    static func text(_ answer: JSONValue) -> String {
        let count = answer.objectValue?["pushes"]?.integerValue ?? 0
        return count == 1 ? "1 push is made" : "\(count) pushes are made"
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
