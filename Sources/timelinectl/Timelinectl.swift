import ArgumentParser
import CurlMulti
import Foundation
import WidgetModel

/// The command line of a gateway's users: backends, clients and operators.
@main
struct Timelinectl: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "timelinectl",
        abstract: "Talk to a timeline gateway.",
        discussion: """
            Announces data changes, registers clients and shows what the gateway tells them.

            Where and who, for every command that asks a gateway:
              --url    TIMELINE_GATEWAY_URL    the gateway, as https://host:8443
              --ca     TIMELINE_GATEWAY_CA     certificates to trust, in PEM
              --token  TIMELINE_GATEWAY_TOKEN  a bearer token; not shown by `ps`
              --app    TIMELINE_GATEWAY_APP    the app's bundle id

            Your shell completes words with what --generate-completion-script bash (zsh, fish) prints.

            Exit status:
              0  done
              1  the gateway refused; its reasons are printed
              2  the command line is wrong
              3  the gateway was not reached, or what answered is none
              4  a signature, or what it vouches for, did not hold
              5  a reload that was due did not come, or one came that was not
              6  the gateway is not ready, or something is wrong with it
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
