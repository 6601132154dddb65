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
        version: productVersion,
        subcommands: [
            CatalogCommand.self, PostCommand.self, RegisterCommand.self, WatchCommand.self,
            PollCommand.self, ExplainCommand.self, ShowCommand.self, ReloadCommand.self,
            ResendCommand.self, AttemptsCommand.self, EventsCommand.self, TokenCommand.self,
            KeysCommand.self, ClientsCommand.self, AppCommand.self, ConfigCommand.self,
            StatusCommand.self, TopCommand.self, DoctorCommand.self, CanaryCommand.self,
            BackupCommand.self, RestoreCommand.self, DeviceCommand.self, DevCommand.self,
        ])

    static func main() async {
        keepOpenSSLAtExit()
        do {
            var command = try parseAsRoot()
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch let status as ExitCode {
            Foundation.exit(status.rawValue)
        } catch {
            let status = exitCode(for: error)
            let text = fullMessage(for: error)
            // Help and version end here too; they are not failures.
            if status == .success { Terminal.print(text) } else { Terminal.complain(text) }
            Foundation.exit(ExitStatus.of(status).rawValue)
        }
    }
}
