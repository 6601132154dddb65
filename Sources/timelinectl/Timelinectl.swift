import ArgumentParser
import Foundation

/// The command line of a gateway's users: backends, clients and operators.
@main
struct Timelinectl: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "timelinectl",
        abstract: "Talk to a timeline gateway.",
        discussion: """
            Announces data changes, registers clients and shows what the gateway tells them.

            Where and who, for every command:
              TIMELINE_GATEWAY_URL    --url    the gateway's origin, such as https://host:8443
              TIMELINE_GATEWAY_CA     --ca     certificates to trust instead of the system's (PEM)
              TIMELINE_GATEWAY_TOKEN  --token  a bearer token; the variable keeps it out of `ps`
              TIMELINE_GATEWAY_APP    --app    the app's bundle id

            Exit status:
              0  done
              1  the gateway refused; its reasons are printed
              2  the command line is wrong
              3  the gateway could not be reached, or what answered is none
              4  a signature, or what it vouches for, did not hold
            """,
        version: "1.0.0",
        subcommands: [
            CatalogCommand.self, PostCommand.self, RegisterCommand.self, WatchCommand.self,
            PollCommand.self, TokenCommand.self, DemoCommand.self,
        ])

    static func main() async {
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
            // Help and version end here too, and are no failure.
            if status == .success { Terminal.print(text) } else { Terminal.complain(text) }
            Foundation.exit(ExitStatus.of(status).rawValue)
        }
    }
}
