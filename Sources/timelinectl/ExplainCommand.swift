import ArgumentParser
import Foundation

struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Explain why something was or was not reloaded.",
        subcommands: [OfChange.self, OfClient.self])

    struct OfChange: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "change",
            abstract: "Explain which subscriptions a change affects, why, and with what result.",
            discussion: """
                With a sequence printed by `post`: explains a logged change by the catalog then in \
                force, and how it was delivered. Needs a token with the scope operator:read.

                With the options of `post`: explains what the change would do, without posting it. \
                Changes nothing. Needs a token with the scope changes:write.

                Examples:
                  timelinectl explain change 4711
                  timelinectl explain change --entity CharacterDetail --id panda --property avatar
                  timelinectl explain change --file events.json --json
                """)

        @OptionGroup var options: CommonOptions
        @OptionGroup var app: AppOption

        @Argument(help: "The sequence of a posted change.")
        var sequence: UInt64?

        @OptionGroup var stated: EventOptions

        func validate() throws {
            let count =
                (sequence == nil ? 0 : 1) + (stated.entity == nil ? 0 : 1)
                + (stated.file == nil ? 0 : 1)
            guard count == 1 else {
                throw ValidationError("give a sequence, --entity or --file")
            }
        }

        func run() async throws {
            if let sequence {
                return try await options.show(
                    "/changes/\(sequence)/explain", of: app, text: ExplanationText.change)
            }
            let document = try stated.document()
            try await options.send(
                "POST", "/changes/explain", of: app.required(), body: document.bytes,
                contentType: document.mediaType, text: ExplanationText.events)
        }
    }

    struct OfClient: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "client",
            abstract: "Show which of a client's items are fresh, and why others are pending.",
            discussion: """
                For each widget, recommendation set and control: whether it is fresh; if stale, \
                since when and by which change, what was sent, and until when it is withheld; or \
                which client attribute is missing, so that no change affects it. Then streams, \
                addresses with their push budget, addresses that were removed, and warnings. \
                Needs a token with the scope operator:read.

                Examples:
                  timelinectl explain client my-iphone
                  timelinectl explain client my-iphone --json
                """)

        @OptionGroup var options: CommonOptions
        @OptionGroup var app: AppOption

        @OptionGroup var client: ClientArgument

        func run() async throws {
            try await options.show(
                "/clients/\(client.client)/explain", of: app, text: ExplanationText.client)
        }
    }
}
