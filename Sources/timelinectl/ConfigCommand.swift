import ArgumentParser
import GatewayDocuments
import TimelineRuntime

struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Compare or reload the configuration of a running gateway.",
        discussion: """
            Examples:
              timelinectl config diff gateway.yaml
              timelinectl config reload --json
            """,
        subcommands: [Diff.self, Reload.self])

    struct Diff: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "diff",
            abstract: "Show what another configuration would change, and when.",
            discussion: """
                The gateway reads the file as its own: it resolves relative paths. Changes \
                nothing. Needs a token with the scope operator for the app `*`.

                Examples:
                  timelinectl config diff gateway.yaml
                  timelinectl config diff - --json <gateway.yaml
                """)

        @OptionGroup var options: CommonOptions

        @Argument(help: "The configuration, or - for standard input.")
        var file: String

        func run() async throws {
            try await ask("diff", try Terminal.read(file), options)
        }
    }

    struct Reload: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "reload",
            abstract: "Make the gateway reload its configuration, certificates and keys.",
            discussion: """
                Same as SIGHUP. Changed files are also detected automatically. Needs a token with \
                the scope operator for the app `*`.

                Examples:
                  timelinectl config reload
                """)

        @OptionGroup var options: CommonOptions

        func run() async throws {
            try await ask("reload", nil, options)
        }
    }

    /// The differences, one per line.
    static func text(_ difference: ConfigurationDifference) -> String {
        TextBlock.table(
            ["OPTION", "BEFORE", "AFTER", "TAKES EFFECT"],
            difference.changes.map { change in
                let isFile = change.contents != nil
                return [
                    change.option, isFile ? "-" : change.before ?? "default",
                    isFile ? "contents changed" : change.after ?? "default", change.takesEffect,
                ]
            }, none: "no difference")
    }
}

/// Sends a configuration request to a gateway and prints the differences.
private func ask(_ what: String, _ document: [UInt8]?, _ options: CommonOptions) async throws {
    try await options.withService(of: "*") { service throws(GatewayFailure) in
        let answer = try await service.document(
            "POST", "/v1/configuration/\(what)", body: document, contentType: "application/yaml")
        try Terminal.print(answer.value, as: options.form, text: ConfigCommand.text)
    }
}
