import ArgumentParser
import GatewayDocuments

struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "List push problems that need an operator.",
        discussion: """
            Topics, keys and requests that APNs, FCM or a browser's push service rejects, disabled \
            webhooks and failing sources of content: the latest since the gateway started, newest \
            first, repeated events only once. Deploy/push.md has the remedies. Needs a token with \
            the scope operator:read.

            Examples:
              timelinectl events
              timelinectl events --app com.mygame --json
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption

    func run() async throws {
        try await options.show("/events", of: app, text: Self.text)
    }

    static func text(_ document: PushEvents) -> String {
        TextBlock.table(
            ["TIME", "EVENT", "TIMES", "CLIENT", "WHAT"],
            document.events.map {
                [$0.time, $0.event, String($0.times), $0.client ?? "-", $0.text]
            }, none: "no events")
    }
}
