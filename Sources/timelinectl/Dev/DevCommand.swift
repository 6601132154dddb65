import ArgumentParser

struct DevCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dev",
        abstract: "Simulate Apple's push service for development.",
        subcommands: [APNsCommand.self, APNsTokenCommand.self])
}
