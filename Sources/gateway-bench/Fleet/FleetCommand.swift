import ArgumentParser
import WidgetModel

extension FleetSettings.Grant: ExpressibleByArgument {}

/// Simulates a fleet of gateways with one log.
struct FleetCommand: ParsableCommand {
    /// The first argument.
    static let name = "fleet"

    static let configuration = CommandConfiguration(
        commandName: "gateway-bench " + name,
        abstract: "Simulate several nodes with one log.",
        discussion: """
            Starts nothing and measures nothing: computes, from measured costs, the load
            of a fleet of nodes with one log on PostgreSQL, and the cost of losing nodes.
            The same options give the same figures on every machine.
            Deploy/capacity.md has the formulas.

            Backends post at random times; each node that is posted to has one batch at
            a time, and the batches take turns at the log's lock. A third of the clients
            is connected, all are pushed to, and each changes its registration once a
            day. A node has 8 cores and 16 GB. The constants are in
            Sources/gateway-bench/Fleet/FleetConstants.swift.

            Prints a table, and a sentence for each limit that is exceeded: network,
            lock, memory, CPU of a node.

            EXIT STATUS
              0    simulated, also if a limit is exceeded
              64   invalid command line

            EXAMPLES
              gateway-bench fleet
              gateway-bench fleet --writers 3 --changes 30000 --grant random
              gateway-bench fleet --nodes 100 --clients 25000000 --lose 1
              gateway-bench fleet --nodes 100 --writers 100 --json > figures.json
            """)

    @Option(help: "Nodes. All of them read the log.")
    var nodes = 3

    @Option(help: "Nodes that backends post to. Default: 3, or all if there are fewer.")
    var writers: Int?

    @Option(help: "Changes a second.")
    var changes = 10_000.0

    @Option(help: "Registered clients.")
    var clients = 100_000

    @Option(help: "Widgets of each client.")
    var widgetsPerClient = 4

    @Option(help: "Nodes that are lost at once.")
    var lose = 0

    @Option(help: "Order in which nodes get the lock: fifo or random.")
    var grant = FleetSettings.Grant.fifo

    @Option(help: "Seconds of posts to simulate.")
    var seconds = 20.0

    @Option(help: "Seed of all that happens by chance.")
    var seed: UInt64 = 1

    @Flag(help: "Print one JSON document instead of a table.")
    var json = false

    func validate() throws {
        let counts = [
            ("--nodes", nodes, 1...1_000), ("--writers", writers ?? 1, 1...max(1, nodes)),
            ("--clients", clients, 0...100_000_000),
            ("--widgets-per-client", widgetsPerClient, 1...200),
            ("--lose", lose, 0...max(0, nodes - 1)),
        ]
        for (name, count, range) in counts where !range.contains(count) {
            throw ValidationError("\(name) must be \(range.lowerBound) to \(range.upperBound).")
        }
        guard (0...200_000).contains(changes) else {
            throw ValidationError("--changes must be 0 to 200000.")
        }
        guard (1...3_600).contains(seconds) else {
            throw ValidationError("--seconds must be 1 to 3600.")
        }
    }

    func run() throws {
        let report = FleetReport(
            FleetRun(
                FleetSettings(
                    nodes: nodes, writers: writers ?? min(3, nodes), changes: changes,
                    clients: clients, widgetsPerClient: widgetsPerClient, lost: lose, grant: grant,
                    seconds: seconds, seed: seed)))
        Terminal.print(json ? report.json.text : report.text)
    }
}
