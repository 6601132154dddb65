import ArgumentParser

/// Stands in for what a team does not have at hand.
struct DevCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dev",
        abstract: "Stand in for Apple's push service while trying things out.",
        subcommands: [APNsCommand.self, APNsTokenCommand.self])
}
