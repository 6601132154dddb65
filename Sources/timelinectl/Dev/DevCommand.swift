import ArgumentParser

/// Simulates services that a team does not have available.
struct DevCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dev",
        abstract: "Stand in for Apple's push service while trying things out.",
        subcommands: [APNsCommand.self, APNsTokenCommand.self])
}
