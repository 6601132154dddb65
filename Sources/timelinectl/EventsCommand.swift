import ArgumentParser
import TimelineClient
import WidgetModel

/// Shows what an operator has to know of pushes.
struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Show what stopped pushes, and wants somebody to look.",
        discussion: """
            Topics and keys that APNs refuses, webhooks that are not asked any more: the latest \
            since the gateway started, the newest first, what happened again and again once. Needs \
            a token with the scope operator.

            Examples:
              timelinectl events
              timelinectl events --app com.mygame --json
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption

    func run() async throws {
        let service = GatewayService(connection: try options.connection(), app: try app.required())
        do throws(GatewayFailure) {
            let answer = try await service.json("GET", "\(service.base)/events")
            Terminal.print(answer.value, as: options.form) { Self.text(answer.value) }
        } catch {
            throw Terminal.fail(error, as: options.form)
        }
    }

    static func text(_ answer: JSONValue) -> String {
        let events = answer.objectValue?["events"]?.arrayValue ?? []
        guard !events.isEmpty else { return "no events" }
        return TextBlock.table(
            ["TIME", "EVENT", "TIMES", "CLIENT", "WHAT"],
            events.map { event in
                let event = event.objectValue ?? [:]
                return [
                    event["time"]?.stringValue ?? "-", event["event"]?.stringValue ?? "-",
                    String(event["times"]?.integerValue ?? 1),
                    event["client"]?.stringValue ?? "-", event["text"]?.stringValue ?? "-",
                ]
            })
    }
}
