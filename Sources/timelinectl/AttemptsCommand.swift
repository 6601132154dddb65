import ArgumentParser
import GatewayDocuments
import WidgetModel

struct AttemptsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attempts",
        abstract: "List recent push attempts and their outcomes.",
        discussion: """
            Newest first. Attempts that ended within the last second may be missing. The outcomes \
            are documented in Deploy/push.md. Needs a token with the scope operator:read.

            Examples:
              timelinectl attempts
              timelinectl attempts --client device-1 --limit 5
              timelinectl attempts --channel webhook --outcome retry --json
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption

    @Option(help: ArgumentHelp("Only attempts for this client.", valueName: "id"))
    var client: String?

    @Option(help: "Only this channel.")
    var channel: NotificationChannel?

    @Option(help: "Only this outcome, such as sent or retry.")
    var outcome: String?

    @Option(help: "Cursor: `before` from the previous page.")
    var before: Int64?

    @OptionGroup var page: PageOptions

    func validate() throws {
        if let client { try requireID(client, of: "a client") }
        guard outcome.map(Identifier.isValid) ?? true else {
            throw ValidationError("--outcome must be one word, such as sent or retry")
        }
    }

    func run() async throws {
        try await options.show("/attempts?\(query)", of: app, text: Self.text)
    }

    /// The query string. No value needs encoding: each is validated first.
    var query: String {
        page.query([
            ("client", client), ("channel", channel?.rawValue), ("outcome", outcome),
            ("before", before.map { "\($0)" }),
        ])
    }

    static func text(_ page: AttemptPage) -> String {
        TextBlock.table(
            ["TIME", "CLIENT", "CHANNEL", "CAUSE", "OUTCOME", "REASON", "MS", "REFERENCE"],
            page.attempts.map {
                [
                    $0.time, $0.client, $0.channel, $0.cause ?? "-", $0.outcome, $0.reason ?? "-",
                    String($0.ms), $0.reference ?? "-",
                ]
            }, none: "no attempts", next: page.before.map { "--before \($0)" })
    }
}
