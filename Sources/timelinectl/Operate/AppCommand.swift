import ArgumentParser
import Foundation
import GatewayDocuments

struct AppCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "app", abstract: "Remove an app.", subcommands: [Delete.self])

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "delete",
            abstract: "Remove an app: its catalog, its clients and their pending notifications.",
            discussion: """
                This can only be undone by restoring a backup. Streams end, and clients that \
                connect get the error unknown-app. The app's log entries stay until retention \
                removes them, but are not served. A catalog put later creates the app anew, and \
                clients rebuild everything whatever cursor they have. Deleting a large app delays \
                other writes. Needs a token with the scope operator.

                On a terminal it asks for the app's id as confirmation; otherwise --yes is required.

                Examples:
                  timelinectl app delete com.mygame.staging
                  timelinectl app delete com.mygame.staging --yes --json
                """)

        @OptionGroup var options: CommonOptions

        @Argument(help: "The app's bundle id.")
        var app: String

        @Flag(help: "Delete without confirmation.")
        var yes = false

        func validate() throws {
            try requireID(app, of: "an app")
        }

        func run() async throws {
            // A missing address is reported before anybody is asked.
            _ = try options.connection()
            if !yes { try confirm() }
            try await options.send("DELETE", "", of: app, text: Self.text)
        }

        static func text(_ removed: RemovedApp) -> String {
            let clients = removed.clients
            return "deleted \(removed.app) and its \(clients) client\(clients == 1 ? "" : "s")"
        }

        private func confirm() throws {
            guard isatty(STDIN_FILENO) == 1 else {
                throw ValidationError("repeat with --yes to delete \(app) and all its clients")
            }
            FileHandle.standardError.write(
                Data("This deletes \(app) and all its clients. Enter its id to confirm: ".utf8))
            guard readLine() == app else {
                Terminal.complain("timelinectl: nothing was deleted")
                throw ExitStatus.refused
            }
        }
    }
}
