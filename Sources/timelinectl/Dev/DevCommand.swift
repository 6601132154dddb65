import ArgumentParser

/// Simulates services that a team does not have available.
struct DevCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dev",
        abstract: "Simulate Apple's push service for development.",
        subcommands: [APNsCommand.self, APNsTokenCommand.self])
}
