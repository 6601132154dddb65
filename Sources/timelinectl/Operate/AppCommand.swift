import ArgumentParser
import Foundation
import TimelineClient
import WidgetModel

/// Commands for an app as a whole.
struct AppCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "app", abstract: "Remove an app.", subcommands: [Delete.self])

    /// Deletes an app and everything that belongs to it.
    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "delete",
            abstract: "Remove an app: its catalog, its clients, and what they are owed.",
            discussion: """
                There is no way back but a backup. Streams end, and clients that come are told that \
                the app is unknown. Its entries of the log stay until they are too old, and nobody \
                is shown them. A catalog put later begins the app anew; whatever cursor clients come \
                with, they rebuild everything. Other writes wait while the clients of a large app go. \
                Needs a token with the scope operator.

                Asks for the app's name again at a terminal; elsewhere it needs --yes.

                Examples:
                  timelinectl app delete com.mygame.staging
                  timelinectl app delete com.mygame.staging --yes --json
                """)

        @OptionGroup var options: CommonOptions

        @Argument(help: "The app's bundle id.")
        var app: String

        @Flag(help: "Do not ask.")
        var yes = false

        func validate() throws {
            guard Identifier.isValid(app) else {
                throw ValidationError("an app is 1 to 128 of A-Z a-z 0-9 . _ ~ -")
            }
        }

        func run() async throws {
            let service = GatewayService(connection: try options.connection(), app: app)
            if !yes { try confirm() }
            do throws(GatewayFailure) {
                let answer = try await service.json("DELETE", service.base)
                Terminal.print(answer.value, as: options.form) {
                    let clients = answer.value.objectValue?["clients"]?.integerValue ?? 0
                    return "deleted \(app) and its \(clients) client\(clients == 1 ? "" : "s")"
                }
            } catch {
                throw Terminal.fail(error, as: options.form)
            }
        }

        private func confirm() throws {
            guard isatty(STDIN_FILENO) == 1 else {
                throw ValidationError("repeat with --yes to delete \(app) and all its clients")
            }
            FileHandle.standardError.write(
                Data("This deletes \(app) and all its clients. Its name again to do it: ".utf8))
            guard readLine() == app else {
                Terminal.complain("timelinectl: nothing was deleted")
                throw ExitStatus.refused
            }
        }
    }
}
