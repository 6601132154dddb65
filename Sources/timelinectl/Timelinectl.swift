import ArgumentParser
import CurlMulti
import Foundation
import WidgetModel

/// The command line of a gateway's users: backends, clients and operators.
@main
struct Timelinectl: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "timelinectl",
        abstract: "Control and inspect a timeline gateway.",
        discussion: """
            Posts data changes, registers clients and shows their notifications.

            Options and environment variables of every command that uses a gateway:
              --url    TIMELINE_GATEWAY_URL    the gateway, such as https://host:8443
              --ca     TIMELINE_GATEWAY_CA     certificates to trust, in PEM
              --token  TIMELINE_GATEWAY_TOKEN  a bearer token; not shown by `ps`
              --app    TIMELINE_GATEWAY_APP    the app's bundle id

            For shell completion, use the output of --generate-completion-script bash (zsh, fish).

            Exit status:
              0  success
              1  the gateway rejected the request; the reason is printed
              2  invalid command line
              3  the gateway was not reached, or its response is invalid
              4  a signature or a signed claim is invalid
              5  an expected reload did not arrive, or an unexpected one did
              6  the gateway is not ready or reports a problem
            """,
        version: productBuild,
        subcommands: [
            CatalogCommand.self, PostCommand.self, OutboxCommand.self, FeedCommand.self,
            ChangesCommand.self, RegisterCommand.self, WatchCommand.self, PollCommand.self,
            ExplainCommand.self,
            ShowCommand.self, PreviewCommand.self, ExtensionCommand.self, ReloadCommand.self,
            ResendCommand.self, AttemptsCommand.self, EventsCommand.self, TokenCommand.self,
            KeysCommand.self, ClientsCommand.self, AppCommand.self, ConfigCommand.self,
            StatusCommand.self, TopCommand.self, DoctorCommand.self, CanaryCommand.self,
            BackupCommand.self, RestoreCommand.self, DeviceCommand.self, DevCommand.self,
        ])

    static func main() async {
        keepOpenSSLAtExit()
        var command: any ParsableCommand
        do {
            command = try parseAsRoot()
        } catch {
            end(parsing: error, Array(CommandLine.arguments.dropFirst()))
        }
        do {
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch let status as ExitCode {
            Foundation.exit(status.rawValue)
        } catch let error as ValidationError {
            // The command line has the right form, so its usage would not help.
            Terminal.complain("timelinectl: \(error.message)")
            Foundation.exit(ExitStatus.usage.rawValue)
        } catch {
            end(parsing: error, [])
        }
    }

    /// Prints why a command line is rejected, or the help or version that it asks for, and ends.
    private static func end(parsing error: any Error, _ arguments: [String]) -> Never {
        guard exitCode(for: error) != .success else {
            Terminal.print(fullMessage(for: error))
            Foundation.exit(0)
        }
        if let hint = CommandHint.text(for: arguments, of: Self.self) {
            Terminal.complain("timelinectl: \(hint)\nSee `timelinectl --help`.")
        } else {
            Terminal.complain(fullMessage(for: error))
        }
        Foundation.exit(ExitStatus.usage.rawValue)
    }
}
